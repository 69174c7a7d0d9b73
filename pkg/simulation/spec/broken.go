package spec

// Break is a rule taken away.
type Break int8

// The rules, each by what is the case without it.
const (
	Nothing Break = iota
	EndUnfenced
	EndAnyStage
	EndLearnsNothing
	RenewByStatus
	CheckpointUnfenced
	AnyStage
	ExpireAtOnce
	ExpireAnyStage
	ExpiredAsIndexed
	ClaimTakesOver
	GhostRow
	NoCap
	CountedAfter
	DeferralsUnbounded
	NotRefunded
	RefundedTwice
	LossesForgiven
	FinishedIsAbandoned
	AttemptsOfTheClaim
	OneRecord
	LostClaimIsAnothers
	LostRenewalIsLoss
	RenewShortens
	AllowedFalls
	SkewIsNotBarred
	CloseAnyGeneration
	JobBeforeRow
	ExhaustClaimed
	BuryAnyGeneration
	NobodyExpires
	NobodyUnparks
	ClaimNotDue
	DeferralForgotten
)

// Variant is a model with one rule taken away. It must fail.
type Variant struct {
	Name  string
	Says  string // the rule that is missing
	Break Break
	Bounds
	Promise string // the promise whose breaking is found
}

// small is the world that most counterexamples fit in.
func small(workers int8, edit func(*Bounds)) Bounds {
	b := Bounds{Workers: workers, Stages: 2, MaxAttempts: 2, MaxRings: 2, TTL: 1, Outcomes: ends(Failed)}
	if edit != nil {
		edit(&b)
	}
	return b
}

// Broken are the variants of the model of one task.
func Broken() []Variant {
	return []Variant{
		{"end-unfenced", "an end needs generation and claim id", EndUnfenced, small(2, func(b *Bounds) { b.Stages = 1 }), "P4"},
		{"end-any-stage", "an end needs the accepted stage that its verdict was worked out from", EndAnyStage, small(1, func(b *Bounds) { b.LostAnswers, b.MaxAttempts = 1, 1 }), "P8"},
		{"end-learns-nothing", "an end refused by a stage of one's own is decided again", EndLearnsNothing, small(1, func(b *Bounds) { b.LostAnswers = 1 }), "P6"},
		{"renew-by-status", "a renewal needs generation and claim id", RenewByStatus, small(2, func(b *Bounds) { b.Stages, b.TTL, b.Outcomes = 1, 2, 0 }), "P3"},
		{"checkpoint-unfenced", "a checkpoint needs generation and claim id", CheckpointUnfenced, small(2, func(b *Bounds) { b.Stages = 1 }), "P6"},
		{"checkpoint-any-stage", "a checkpoint is accepted after the stage before it", AnyStage, small(1, func(b *Bounds) { b.LateCopies = 1 }), "P2"},
		{"expire-at-once", "a claim is taken away only when it has lapsed on every clock", ExpireAtOnce, small(1, func(b *Bounds) { b.TTL, b.MaxSkew, b.Skew = 2, 4, [MaxWorkers]int8{-2} }), "P3"},
		{"expire-any-stage", "an expiry needs the accepted stage that its verdict was worked out from", ExpireAnyStage, small(1, nil), "P6"},
		{"expired-as-indexed", "a lapsed claim is expired as its row stands, not as the index shows it", ExpiredAsIndexed, small(1, func(b *Bounds) { b.Stages, b.MaxAttempts, b.MaxDeferrals, b.Answers = 1, 1, 1, 1 }), "P6"},
		{"claim-takes-over", "only an expiry ends somebody else's claim", ClaimTakesOver, small(2, func(b *Bounds) { b.Stages = 1 }), "P7"},
		{"ghost-row", "a claim needs a row", GhostRow, small(1, func(b *Bounds) { b.Vanishes = 1 }), "P5"},
		{"no-cap-at-the-claim", "a claim needs attempts that are left", NoCap, small(1, func(b *Bounds) { b.Deploys = 1 }), "P7"},
		{"counted-after", "an attempt is counted by its claim, before the work", CountedAfter, small(1, func(b *Bounds) { b.Crashes = 3; b.MaxAttempts = 1 }), "P7"},
		{"deferrals-unbounded", "deferrals have a number of their own", DeferralsUnbounded, small(1, func(b *Bounds) { b.MaxDeferrals, b.Outcomes = 1, ends(Deferral) }), "P7"},
		{"not-refunded", "a deferral gives its attempt back", NotRefunded, small(1, func(b *Bounds) { b.MaxDeferrals, b.Outcomes = 3, ends(Deferral) }), "P6"},
		{"refunded-twice", "a deferral gives one attempt back", RefundedTwice, small(1, func(b *Bounds) { b.MaxDeferrals, b.Outcomes = 2, ends(Deferral) }), "P7"},
		{"losses-forgiven", "the third loss since the last accepted stage counts", LossesForgiven, small(1, func(b *Bounds) { b.Stages, b.MaxDeferrals, b.Answers, b.Crashes, b.Outcomes = 1, 3, 3, 3, 0 }), "P7"},
		{"finished-is-abandoned", "finished work is done, whatever the ending says", FinishedIsAbandoned, small(1, nil), "P8"},
		{"attempts-of-the-claim", "attempts count from the last accepted stage", AttemptsOfTheClaim, small(1, nil), "P6"},
		{"one-record", "a record's key names who ended the attempt", OneRecord, small(1, nil), "P4"},
		{"lost-claim", "a claim that the row shows is one's own, although its answer was lost", LostClaimIsAnothers, small(1, func(b *Bounds) { b.LostAnswers = 1 }), "P6"},
		{"lost-renewal", "a renewal refused by a claim that is still one's own is no loss", LostRenewalIsLoss, small(1, func(b *Bounds) { b.LostAnswers = 1 }), "P6"},
		{"renewal-shortens", "a renewal never shortens", RenewShortens, small(1, func(b *Bounds) { b.LateCopies, b.TTL = 1, 2 }), "P3"},
		{"allowed-falls", "tries allowed never go back while a claim lasts", AllowedFalls, small(1, func(b *Bounds) { b.TryCap, b.LateCopies, b.TTL, b.MaxAttempts, b.Outcomes = 2, 1, 2, 1, 0 }), "P3"},
		// Not asked for fairness: a barred worker may be the one that gets every message.
		{"skew-is-not-barred", "a worker whose clock is too wrong claims and expires nothing", SkewIsNotBarred, small(2, func(b *Bounds) { b.TTL, b.MaxSkew, b.Skew, b.Safety = 2, 1, [MaxWorkers]int8{4}, true }), "P3"},
		{"close-any-generation", "a row is closed only as it was seen", CloseAnyGeneration, small(1, func(b *Bounds) { b.Stages, b.Deadlines, b.Redrives, b.MaxAttempts = 1, 1, 1, 1 }), "P5"},
		{"job-before-row", "the job is read after the row that is closed for its sake", JobBeforeRow, small(1, func(b *Bounds) { b.Stages, b.Deadlines, b.Redrives, b.MaxAttempts = 1, 1, 1, 1 }), "P5"},
		{"exhaust-claimed", "a row that is used up is ended only while nobody holds it", ExhaustClaimed, small(1, nil), "P4"},
		{"bury-any-generation", "the dead letter's mark names the generation", BuryAnyGeneration, small(1, func(b *Bounds) { b.Stages, b.Redrives, b.MaxAttempts = 1, 1, 1 }), "P4"},
		{"nobody-expires", "lapsed claims are expired", NobodyExpires, small(1, func(b *Bounds) { b.Crashes = 1 }), "P7"},
		{"nobody-unparks", "parked rows of a running job are unparked", NobodyUnparks, small(1, func(b *Bounds) { b.Pauses = 1 }), "P7"},
		{"claim-not-due", "a claim leaves a time at which the reaper looks", ClaimNotDue, small(1, func(b *Bounds) { b.Crashes, b.LostBells = 1, 1 }), "P10"},
		{"deferral-forgotten", "a deferral leaves a time at which the reaper rings", DeferralForgotten, small(1, func(b *Bounds) { b.MaxDeferrals, b.Outcomes = 1, ends(Failed, Deferral) }), "P10"},
	}
}
