package spec

const tick = "time passes"

// time is what passes by itself: claims lapse on everybody's clock at once, whatever the clocks show.
func (x *expansion) time() {
	m, r := x.m, &x.s.Row
	floor := -m.MaxSkew - 1 - m.Deep
	for _, skew := range m.Skew {
		floor = min(floor, floor+skew)
	}
	ticks := r.Status == Claimed && r.Left > floor
	for i := range m.Workers {
		ticks = ticks || x.s.Worker[i].Own > 0
	}
	if ticks {
		n := *x.s
		down := func(left *int8, to int8) { *left = max(to, *left-1) }
		if r.Status == Claimed && r.Left > floor {
			n.Row.Left--
			n.age(m)
		}
		for i := range m.Workers {
			w := &n.Worker[i]
			down(&w.Own, 0)
			if w.At == RenewSent {
				down(&w.Asked, floor)
			}
		}
		if n.Late.Op == OpClaim || n.Late.Op == OpRenew {
			down(&n.Late.Left, floor)
		}
		x.step(n, Time, Says{Text: tick})
	}
	if r.Status == Pending && !r.Ready && !r.Gone {
		n := *x.s
		n.Row.Ready = true
		x.step(n, Ready, Says{Text: "ready_at passes"})
	}
	if x.comesDue() {
		n := *x.s
		n.Row.Due = true
		x.step(n, Due, Says{Text: "due_at passes"})
	}
}

// age makes older what expiries are based on: their time is that of the reading. Without the rule the reading is what the
// index shows, from whenever it may be.
func (s *World) age(m *Task) {
	if m.breaks(ExpiredAsIndexed) {
		return
	}
	if s.Reaper.Does == Expiring {
		s.Reaper.Seen.Age++
	}
	for i := range m.Workers {
		if s.Worker[i].At == LossWrite {
			s.Worker[i].Seen.Age++
		}
	}
	if s.Late.Op == OpExpire {
		s.Late.Age++
	}
}

// comesDue says that due_at of a row that is not due may pass: never before ready_at, or before the claim lapses.
func (x *expansion) comesDue() bool {
	r := &x.s.Row
	if r.Due || !r.Listed() {
		return false
	}
	switch r.Status {
	case Pending:
		if x.m.breaks(DeferralForgotten) && r.Def > 0 && r.Att < x.m.MaxAttempts && r.EndedBy != ByExpiry && r.Rings == 0 {
			return false
		}
		return r.Ready
	case Claimed:
		return r.Left < 0 && !x.m.breaks(ClaimNotDue)
	}
	return true
}

// queue is what becomes of messages by themselves.
func (x *expansion) queue() {
	for b := range x.s.Bells {
		bell := x.s.Bells[b]
		if bell.At == 2 && (bell.Who == 0 || x.s.Left.Doubled > 0) {
			n := *x.s
			n.Bells[b].At, n.Bells[b].Who = 1, 0
			who, text := Bell0+Actor(b), "a message is visible again"
			if bell.Who != 0 {
				n.Left.Doubled--
				who, text = Fault, "a message is visible again although a worker has it"
			}
			x.step(n, who, Says{Text: text})
		}
		if bell.At == 1 && x.s.Left.LostBells > 0 {
			n := *x.s
			n.Left.LostBells--
			n.Bells[b] = Bell{}
			x.step(n, Fault, Says{Text: "a message is lost"})
		}
		if bell.At == 1 && x.s.Left.Doubled > 0 && (x.s.Bells[0].At == 0 || x.s.Bells[1].At == 0) {
			n := *x.s
			n.Left.Doubled--
			n.send(bell.Old)
			x.step(n, Fault, Says{Text: "a message is doubled"})
		}
	}
}

// late is the copy of a write that arrives at last.
func (x *expansion) late() {
	wr := x.s.Late
	if wr.Op == NoOp {
		return
	}
	n := *x.s
	n.Late = Write{}
	lands := x.write(&n, wr)
	bad := ""
	if lands {
		switch wr.Op {
		case OpClaim:
			x.counted(&n)
			if x.s.Row.Gone {
				bad = "P5 a row that was deleted is back, as a ghost"
			}
		case OpCheckpoint:
			n.progressed()
		case OpRedrive:
			x.reopened(&n)
		case OpClose:
			bad = x.closed(&n, wr.V.Status == Abandoned)
		}
	}
	text := "a late copy of the " + wr.Op.String() + " arrives, and is refused"
	if lands {
		text = "a late copy of the " + wr.Op.String() + " of generation {a} lands"
	}
	step := x.step(n, Fault, Says{Text: text, A: wr.Gen})
	step.Write, step.Lands, step.Bad = wr, lands, bad
}

// progressed keeps the world's own count when a stage is accepted.
func (s *World) progressed() { s.Ghost.Counted, s.Ghost.Lost = 1, 0 }

func (x *expansion) reopened(n *World) {
	n.Over = false
	n.Ghost.Counted, n.Ghost.Lost, n.Ghost.LetterSent = 0, 0, false
	n.Ghost.Redriven++
}

// people is submit.Submitter.Pause, Resume and Cancel, the job's deadline, triage.Triage.Redrive, a deploy, and a row deleted.
func (x *expansion) people() {
	s, left := x.s, x.s.Left
	if left.Pauses > 0 && !s.Paused && !s.Cancel {
		n := *s
		n.Left.Pauses--
		n.Paused = true
		x.step(n, Fault, Says{Text: "the job is paused"})
	}
	if s.Paused {
		n := *s
		n.Paused = false
		x.step(n, Person, Says{Text: "the job is resumed"})
	}
	if left.Cancels > 0 && !s.Cancel {
		n := *s
		n.Left.Cancels--
		n.Cancel, n.Paused = true, false
		x.step(n, Fault, Says{Text: "the job is cancelled"})
	}
	if left.Deadlines > 0 && !s.Over && !s.Paused {
		n := *s
		n.Left.Deadlines--
		n.Over = true
		who := Fault
		if x.m.Workers == 0 {
			who = Time // nobody serves the row: the deadline is what ends it
		}
		x.step(n, who, Says{Text: "the job's deadline passes"})
	}
	redrivable := s.Row.Status == Abandoned || (s.Row.Status == Cancelled && s.Over)
	if left.Redrives > 0 && redrivable && !s.Row.Gone && !s.Cancel {
		n := *s
		n.Left.Redrives--
		wr := Write{Op: OpRedrive, Status: s.Row.Status, Gen: s.Row.Gen, Acc: s.Row.Acc}
		x.write(&n, wr)
		x.reopened(&n)
		step := x.step(n, Fault, Says{Text: "a person redrives the row: generation {a}", A: n.Row.Gen})
		step.Write, step.Lands = wr, true
		x.copied(n, wr, true)
	}
	if left.Deploys > 0 {
		n := *s
		n.Left.Deploys--
		n.Fewer = true
		x.step(n, Fault, Says{Text: "a policy is deployed that allows {a} attempts", A: x.m.limit(&n)})
	}
	if left.Vanishes > 0 && !s.Row.Gone {
		n := *s
		n.Left.Vanishes--
		wr := Write{Op: OpVanish}
		x.write(&n, wr)
		step := x.step(n, Fault, Says{Text: "the row is deleted behind everybody's back"})
		step.Write, step.Lands = wr, true
	}
}
