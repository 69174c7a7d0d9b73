package spec

// NamedWorld is a world of one task with a name.
type NamedWorld struct {
	Name string
	Bounds
}

func world(name string, workers int8, edit func(*Bounds)) NamedWorld {
	return NamedWorld{name, small(workers, edit)}
}

// Small are the worlds that every test run searches whole.
func Small() []NamedWorld {
	return []NamedWorld{
		world("crashes, lost answers, a doubled message", 1, func(b *Bounds) {
			b.Crashes, b.LostAnswers, b.Doubled = 1, 1, 1
		}),
		world("late copies of any write", 1, func(b *Bounds) { b.LateCopies, b.Crashes = 1, 1 }),
		world("lost messages, a reaper that dies, a redrive", 1, func(b *Bounds) {
			b.LostBells, b.ReaperCrashes, b.Redrives, b.Crashes, b.Stages = 1, 1, 1, 1, 1
		}),
		world("pause, cancel, deadline, redrive", 1, func(b *Bounds) {
			b.Pauses, b.Cancels, b.Deadlines, b.Redrives, b.Stages = 1, 1, 1, 1, 1
		}),
		world("tries in blocks, crashes, a redrive", 1, func(b *Bounds) {
			b.Stages, b.TryCap, b.Crashes, b.Redrives, b.MaxAttempts = 1, 2, 1, 1, 1
		}),
		world("tries in blocks, lost answers", 1, func(b *Bounds) { b.TryCap, b.LostAnswers = 2, 1 }),
		world("tries in blocks, late copies", 1, func(b *Bounds) { b.TryCap, b.LateCopies, b.TTL, b.MaxAttempts = 3, 1, 2, 1 }),
		world("losses with new answers", 1, func(b *Bounds) {
			b.Stages, b.MaxDeferrals, b.Answers, b.Crashes, b.Outcomes = 1, 3, 3, 3, 0
		}),
		world("new answers, attempts that time out", 1, func(b *Bounds) {
			b.Stages, b.MaxDeferrals, b.Answers, b.Crashes, b.Outcomes = 1, 1, 2, 1, ends(Overran)
		}),
		world("a policy that allows less, a row that vanishes", 1, func(b *Bounds) { b.Deploys, b.Vanishes, b.Crashes = 1, 1, 1 }),
		world("a row that nobody serves", 0, func(b *Bounds) { b.Deadlines, b.Pauses, b.LostBells = 1, 1, 1 }),
		world("two workers", 2, func(b *Bounds) { b.Stages = 1 }),
		world("two workers, a crash, a queue that gives messages up", 2, func(b *Bounds) { b.Stages, b.Crashes, b.MaxReceives, b.MaxAttempts = 1, 1, 2, 1 }),
		world("two workers with clocks that differ", 2, func(b *Bounds) {
			b.Stages, b.TTL, b.MaxSkew, b.Skew = 1, 2, 2, [MaxWorkers]int8{-1, 1}
		}),
	}
}

// Large are those of make spec.
func Large() []NamedWorld {
	return []NamedWorld{
		world("crashes, lost answers, a doubled message, deferrals", 1, func(b *Bounds) {
			b.Crashes, b.LostAnswers, b.Doubled, b.MaxDeferrals = 1, 1, 1, 1
			b.Outcomes = ends(Failed, Deferral, Shut, Permanent)
		}),
		world("late copies of any write, crashes, deferrals", 1, func(b *Bounds) {
			b.LateCopies, b.Crashes, b.MaxDeferrals, b.Outcomes = 1, 1, 1, ends(Failed, Deferral)
		}),
		world("late copies of any write, deferrals", 1, func(b *Bounds) { b.LateCopies, b.MaxDeferrals, b.Outcomes = 1, 1, ends(Failed, Deferral, Shut) }),
		world("late copies of any write, a redrive", 1, func(b *Bounds) { b.LateCopies, b.Redrives, b.Crashes, b.Stages = 1, 1, 1, 1 }),
		world("tries in blocks, new answers, crashes, a redrive", 1, func(b *Bounds) {
			b.Stages, b.TryCap, b.Answers, b.Crashes, b.Redrives, b.MaxDeferrals = 1, 2, 1, 1, 1, 1
		}),
		world("pause, cancel, deadline, redrive, crash", 1, func(b *Bounds) {
			b.Pauses, b.Cancels, b.Deadlines, b.Redrives, b.Crashes, b.Stages = 1, 1, 1, 1, 1, 1
		}),
		world("two workers, two stages, a crash", 2, func(b *Bounds) { b.Crashes, b.MaxAttempts = 1, 1 }),
		world("two workers, late copies", 2, func(b *Bounds) { b.LateCopies, b.Stages, b.MaxAttempts = 1, 1, 1 }),
		world("two workers, lost answers", 2, func(b *Bounds) { b.LostAnswers, b.Stages = 1, 1 }),
		world("two workers, a redrive", 2, func(b *Bounds) { b.Redrives, b.Stages, b.MaxAttempts = 1, 1, 1 }),
		world("three workers", 3, func(b *Bounds) { b.Stages, b.Symmetric = 1, true }),
		world("three workers, a crash", 3, func(b *Bounds) { b.Stages, b.Crashes, b.MaxAttempts, b.Symmetric = 1, 1, 1, true }),
	}
}
