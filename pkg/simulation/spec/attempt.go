package spec

// work is the steps of a worker under its claim: work.attempt and work.Stages.
func (x *expansion) work(i int8, w Worker) {
	told := x.s.Row.New == w.Stand.New
	if w.Own < x.m.TTL || !told {
		x.renew(i, w, w.Allowed, Keeping, "{who} renews generation {a}")
	}
	if w.Own > 0 {
		x.calls(i, w)
	}
	if w.Stand.Acc < x.m.Stages {
		x.accept(i, w)
	}
	x.decide(i, w, OK, Failed, Deferral, Shut, Permanent, Stopped, ParkedNow, Overran)
}

// calls is what a worker does that trusts its claim: attempt.MaySend and attempt.Answered.
func (x *expansion) calls(i int8, w Worker) {
	m, s := x.m, x.s
	switch {
	case m.TryCap == 0:
	case w.Used < w.Allowed:
		n := *s
		n.Worker[i].Used++
		n.Ghost.Sent++
		x.step(n, x.by(i), Says{Text: "{who} sends a try, the task's number {a}", Who: i, A: n.Ghost.Sent})
	case w.Allowed < s.Row.MaxTries:
		x.renew(i, w, w.Allowed+1, x.by(i), "{who} is allowed a block of tries by renewing generation {a}")
	default: // pipeline.ErrTriesUsed
		n := *s
		x.record(&n, i, Permanent)
		x.step(n, x.by(i), Says{Text: "{who} finds the tries used up", Who: i})
	}
	if m.Answers > 0 && !w.Stand.New && s.Ghost.Answers < m.Answers {
		n := *s
		n.Worker[i].Stand.New = true
		n.Ghost.Answers++
		x.step(n, x.by(i), Says{Text: "{who} stores a new answer", Who: i})
	}
}

// renew is attempt.renewTo.
func (x *expansion) renew(i int8, w Worker, allowed int8, who Actor, text string) {
	n := *x.s
	wr := Write{Op: OpRenew, Gen: w.Gen, Claim: w.Claim, Left: x.m.TTL + x.m.Skew[i], New: w.Stand.New, Allowed: allowed}
	if !x.write(&n, wr) {
		bad := x.renewalRefused(&n, i, w)
		who = Keeping
		if n.Worker[i].At == Halted {
			who = x.by(i)
		}
		step := x.step(n, who, Says{Text: "{who}'s renewal is refused (row {row}, generation {a})", Who: i, Row: x.s.Row.Status, A: x.s.Row.Gen})
		step.Write, step.Bad = wr, bad
		return
	}
	n.Worker[i].Own, n.Worker[i].Allowed = x.m.TTL, allowed
	step := x.step(n, who, Says{Text: text, Who: i, A: w.Gen})
	step.Write, step.Lands = wr, true
	if x.s.Left.LostAnswers > 0 {
		lost := n
		lost.Left.LostAnswers--
		lost.Worker[i] = w
		lost.Worker[i].At, lost.Worker[i].Asked = RenewSent, x.m.TTL
		lost.Worker[i].Allowed = allowed // what it asks for, until it knows
		step := x.step(lost, Fault, Says{Text: "{who}'s renewal lands, its answer is lost", Who: i})
		step.Write, step.Lands = wr, true
	}
	x.copied(n, wr, true)
	if x.s.Left.LateCopies > 0 && x.s.Late.Op == NoOp { // the stage's own goroutine does not wait for it
		slow := *x.s
		slow.Left.LateCopies--
		slow.Late = wr
		x.step(slow, Fault, Says{Text: "{who}'s renewal is delayed in the network; the work goes on", Who: i})
	}
}

// renewalRefused is the end of attempt.renewTo: the row that refused it may show that it is still ours.
func (x *expansion) renewalRefused(n *World, i int8, w Worker) (bad string) {
	r := &x.s.Row
	ours := !r.Gone && r.Status == Claimed && r.Gen == w.Gen && r.Claim == w.Claim
	if ours && x.m.breaks(LostRenewalIsLoss) {
		bad = "P6 a healthy worker takes its own renewal for the loss of its claim"
		ours = false
	}
	if !ours {
		n.Worker[i] = Worker{At: Halted, Bell: w.Bell, Claim: w.Claim, Gen: w.Gen, Stand: w.Stand, Allowed: w.Allowed, Used: w.Used}
		return bad
	}
	n.Worker[i].At, n.Worker[i].Asked = Working, 0
	n.Worker[i].Own = max(0, min(r.Left-x.m.Skew[i], max(w.Own, w.Asked)))
	n.Worker[i].Allowed = r.Allowed
	return ""
}

// renewAgain is the second sending of a renewal whose answer was lost.
func (x *expansion) renewAgain(i int8, w Worker) {
	n := *x.s
	wr := Write{Op: OpRenew, Gen: w.Gen, Claim: w.Claim, Left: w.Asked + x.m.Skew[i], New: w.Stand.New, Allowed: w.Allowed}
	bad, lands := "", x.write(&n, wr)
	if lands {
		n.Worker[i].At, n.Worker[i].Own, n.Worker[i].Asked = Working, max(0, w.Asked), 0
	} else {
		bad = x.renewalRefused(&n, i, w)
	}
	step := x.step(n, x.by(i), Says{Text: "{who} sends its renewal again (row {row}, generation {a})", Who: i, Row: x.s.Row.Status, A: x.s.Row.Gen})
	step.Write, step.Lands, step.Bad = wr, lands, bad
}

// accept is attempt.Checkpoint.
func (x *expansion) accept(i int8, w Worker) {
	n := *x.s
	wr := x.m.acceptance(x.s, w)
	if !x.write(&n, wr) {
		x.acceptRefused(i, w, wr)
		return
	}
	n.progressed()
	x.accepted(&n, i, w)
	step := x.step(n, x.by(i), Says{Text: "{who} gets stage {b} accepted, generation {a}", Who: i, A: w.Gen, B: wr.Acc})
	step.Write, step.Lands = wr, true
	if x.s.Left.LostAnswers > 0 {
		lost := n
		lost.Left.LostAnswers--
		lost.Worker[i] = w
		lost.Worker[i].At = AcceptSent
		step := x.step(lost, Fault, Says{Text: "{who}'s checkpoint of stage {b} lands, its answer is lost", Who: i, B: wr.Acc})
		step.Write, step.Lands = wr, true
	}
	x.copied(n, wr, true)
	if x.s.Left.LateCopies > 0 && x.s.Late.Op == NoOp {
		slow := *x.s
		slow.Left.LateCopies--
		slow.Late, slow.Worker[i].At = wr, AcceptSent
		x.step(slow, Fault, Says{Text: "{who}'s checkpoint of stage {b} is delayed in the network", Who: i, B: wr.Acc})
	}
}

// accepted is what a worker knows once a stage was accepted.
func (x *expansion) accepted(n *World, i int8, w Worker) {
	n.Worker[i] = w
	n.Worker[i].At = Working
	n.Worker[i].Stand.Acc++
	n.Worker[i].Stand.Los = 0
	if !x.m.breaks(AttemptsOfTheClaim) {
		n.Worker[i].Stand.Att = x.m.first()
	}
	n.Worker[i].Allowed = max(w.Allowed, n.Row.Allowed)
}

// acceptAgain is the second sending of attempt.accept. It may be the last, or the attempt may be stopped meanwhile: then
// it ends without knowing whether the stage was accepted.
func (x *expansion) acceptAgain(i int8, w Worker) {
	x.acceptRefused(i, w, x.m.acceptance(x.s, w))
	x.decide(i, w, Deferral, Shut, Stopped, ParkedNow, Overran)
}

// acceptance is the write of attempt.accept: with the next stage's first block of tries.
func (m *Task) acceptance(s *World, w Worker) Write {
	wr := Write{Op: OpCheckpoint, Gen: w.Gen, Claim: w.Claim, Acc: w.Stand.Acc + 1, Allowed: w.Allowed}
	if wr.Acc < m.Stages && m.TryCap > 0 {
		wr.Allowed = max(wr.Allowed, min(w.Used+1, s.Row.MaxTries))
	}
	return wr
}

// acceptRefused is what attempt.accept makes of a refusal: our own generation at that stage means that it landed.
func (x *expansion) acceptRefused(i int8, w Worker, wr Write) {
	n := *x.s
	r := &x.s.Row
	if w.At == AcceptSent && x.write(&n, wr) { // the first is still in the network; only a broken store does it twice
		n.progressed()
		x.accepted(&n, i, w)
		step := x.step(n, x.by(i), Says{Text: "{who} sends its checkpoint again, and it lands", Who: i})
		step.Write, step.Lands = wr, true
		return
	}
	says := Says{Text: "{who}'s checkpoint is refused (row {row}, generation {a})", Who: i, Row: r.Status, A: r.Gen}
	bad := ""
	ours := !r.Gone && r.Status == Claimed && r.Gen == w.Gen && r.Claim == w.Claim
	switch {
	case !r.Gone && r.Acc >= wr.Acc && r.Body[wr.Acc-1] == w.Gen:
		x.accepted(&n, i, w)
		says.Text = "{who}'s checkpoint is refused, and the row shows it: it landed"
	case ours && r.Acc == wr.Acc-1 && r.Allowed > wr.Allowed:
		n.Worker[i].At, n.Worker[i].Allowed = Working, r.Allowed
		says.Text = "{who}'s checkpoint is refused: a renewal of its own allowed more; once more"
	default:
		n.Worker[i] = Worker{At: Halted, Bell: w.Bell, Claim: w.Claim, Gen: w.Gen, Stand: w.Stand, Allowed: w.Allowed, Used: w.Used}
		if ours {
			bad = "P6 a healthy worker loses a stage to one that lost its claim, and takes that for the loss of its own"
		}
	}
	step := x.step(n, x.by(i), says)
	step.Write, step.Bad = wr, bad
}

// decide is how the attempt may end now, and the first half of Worker.decideEnd: the record.
func (x *expansion) decide(i int8, w Worker, outcomes ...Outcome) {
	for _, o := range outcomes {
		possible := x.m.Outcomes&(1<<o) != 0 || w.At == Halted || (w.At == AcceptSent && o == Deferral)
		switch o {
		case OK:
			possible = w.Stand.Acc >= x.m.Stages
		case Stopped:
			possible = x.s.stops()
		case ParkedNow:
			possible = x.s.Paused
		}
		if !possible {
			continue
		}
		n := *x.s
		x.record(&n, i, o)
		x.step(n, x.by(i), Says{Text: "{who} is to end generation {a}, " + o.String() + ": writes the record", Who: i, A: w.Gen})
	}
}

func (x *expansion) record(n *World, i int8, o Outcome) {
	w := &n.Worker[i]
	w.At, w.Out, w.Own, w.Asked = Ending, o, 0, 0
	if x.s.Row.Gen == w.Gen {
		n.Ghost.ByOwner = true
		n.Ghost.ByExpirer = n.Ghost.ByExpirer && !x.m.breaks(OneRecord)
	}
}

// end is Worker.decideEnd after the record: the row.
func (x *expansion) end(i int8, w Worker) {
	n := *x.s
	v := x.m.next(x.m.limit(x.s), w.Stand, w.Out)
	wr := Write{Op: OpEnd, Gen: w.Gen, Claim: w.Claim, Acc: w.Stand.Acc, Allowed: w.Used, V: v}
	if !x.write(&n, wr) {
		x.endRefused(i, w, wr)
		return
	}
	bad := x.endedBy(&n, w.Out, w.Stand)
	if !x.s.Ghost.ByOwner {
		bad = "P4 an attempt was ended by its worker, and its record says something else, or is missing"
	}
	landed := n
	x.after(&n, i, v, w)
	says := Says{Text: "{who}'s end of generation {a} lands: the row is {row}, attempts {b}, deferrals {c}", Who: i, A: w.Gen, B: n.Row.Att, C: n.Row.Def, Row: n.Row.Status}
	step := x.step(n, x.by(i), says)
	step.Write, step.Lands, step.Bad = wr, true, bad
	if x.s.Left.LostAnswers > 0 {
		landed.Left.LostAnswers--
		step := x.step(landed, Fault, Says{Text: "{who}'s end of generation {a} lands: the row is {row}; its answer is lost", Who: i, A: w.Gen, Row: n.Row.Status})
		step.Write, step.Lands = wr, true
	}
	x.copied(n, wr, true)
}

// endRefused is what Worker.end makes of a refusal: ended by this claim, it landed; still this claim's, with more stages
// accepted (attempt.acceptedMeanwhile), the attempt knows them now and decides again.
func (x *expansion) endRefused(i int8, w Worker, wr Write) {
	n := *x.s
	r := &x.s.Row
	says := Says{Text: "{who}'s end of generation {a} is refused (row {row}, generation {b})", Who: i, A: w.Gen, B: r.Gen, Row: r.Status}
	bad := ""
	unheard := !r.Gone && r.Status == Claimed && r.Gen == w.Gen && r.Claim == w.Claim && r.Acc > w.Stand.Acc
	switch {
	case !r.Gone && r.EndedBy == w.Claim && r.Gen == w.Gen:
		x.after(&n, i, wr.V, w)
		says.Text = "{who}'s end of generation {a} is refused, and the row shows it: it landed"
	case unheard && !x.m.breaks(EndLearnsNothing):
		stand := &n.Worker[i].Stand
		stand.Acc, stand.Att, stand.Los = r.Acc, r.Att, r.Los
		says.Text, says.B = "{who}'s end of generation {a} is refused, and the row shows stage {b} accepted: it decides again", r.Acc
	default:
		back(&n, i)
		if unheard {
			bad = "P6 a healthy worker leaves the claim that it holds to lapse: it takes its own checkpoint for another's"
		}
	}
	step := x.step(n, x.by(i), says)
	step.Write, step.Bad = wr, bad
}

// endedBy keeps the world's own count when an attempt ends, and says what was wrong about it.
func (x *expansion) endedBy(n *World, o Outcome, s Standing) (bad string) {
	before := &x.s.Row
	faultless := false
	switch o {
	case Deferral, Shut:
		faultless = before.Def < x.m.MaxDeferrals
	case ParkedNow:
		faultless = true
	case Overran:
		faultless = s.New
	case Died:
		n.Ghost.Lost++
		faultless = s.New && before.Def < x.m.MaxDeferrals && n.Ghost.Lost <= lossesForgiven
		if n.Ghost.Lost > lossesForgiven && n.Row.Att < before.Att {
			bad = "P7 a third loss in a row is refunded: a poison that makes progress kills workers for ever"
		}
	}
	if n.Row.Status == Parked {
		n.Ghost.Parks++
	}
	if faultless {
		n.Ghost.Counted--
	}
	if n.Row.Status == Abandoned && o != Permanent && n.Ghost.Counted < x.m.limit(x.s) {
		bad = "P6 given up before its attempts were used up"
	}
	return bad
}

// after is Worker.after: the dead letter, the bell, the delivery.
func (x *expansion) after(n *World, i int8, v Verdict, w Worker) {
	n.Worker[i] = Worker{At: Deleting, Bell: w.Bell}
	switch {
	case n.Row.Status == Abandoned:
		n.Worker[i].At, n.Worker[i].Gen = Letter, n.Row.Gen
	case n.Row.Status == Pending && v.Counted:
		back(n, i)
	case n.Row.Status == Pending && w.Out == Shut:
		n.Worker[i].At, n.Worker[i].Seen = Ringing, read(&n.Row)
	}
}

// ringItself is Worker.ring: a shutdown rings the row before the worker exits.
func (x *expansion) ringItself(i int8, w Worker) {
	n := *x.s
	if w.At == RingSending {
		n.send(w.Seen.Rung)
		n.Worker[i] = Worker{At: Deleting, Bell: w.Bell}
		x.step(n, x.by(i), Says{Text: "{who} sends the message", Who: i})
		return
	}
	wr := w.Seen.write(OpRing)
	wr.Count = min(w.Seen.Rings+1, x.m.MaxRings)
	lands := x.write(&n, wr)
	n.Worker[i].At, n.Worker[i].Seen = RingSending, read(&n.Row)
	if !lands {
		n.Worker[i] = Worker{At: Deleting, Bell: w.Bell}
	}
	step := x.step(n, x.by(i), Says{Text: "{who} rings the row itself", Who: i})
	step.Write, step.Lands = wr, lands
}

// leave is Reaper.Bury by a worker, and the end of a delivery.
func (x *expansion) leave(i int8, w Worker) {
	n := *x.s
	switch w.At {
	case Letter:
		n.Ghost.LetterSent = n.Ghost.LetterSent || (x.s.Row.Status == Abandoned && x.s.Row.Gen == w.Gen)
		n.Worker[i].At = Marking
		x.step(n, x.by(i), Says{Text: "{who} sends the dead letter", Who: i})
	case Marking:
		wr := Write{Op: OpBuried, Gen: w.Gen}
		lands := x.write(&n, wr)
		n.Worker[i] = Worker{At: Deleting, Bell: w.Bell}
		step := x.step(n, x.by(i), Says{Text: "{who} marks the dead letter of generation {a} as sent (row {row}, generation {b})", Who: i, A: w.Gen, B: x.s.Row.Gen, Row: x.s.Row.Status})
		step.Write, step.Lands = wr, lands
		if lands {
			x.copied(n, wr, true)
		}
	default:
		if w.Bell > 0 && n.Bells[w.Bell-1].Who == i+1 {
			n.Bells[w.Bell-1] = Bell{}
		}
		n.Worker[i] = Worker{}
		x.step(n, x.by(i), Says{Text: "{who} deletes its delivery", Who: i})
	}
}
