package spec

// Sweep is the reaper at work on the row: reap.Reaper.step.
type Sweep struct {
	Does Move
	Part int8 // how far it is
	Seen Reading
	Stop bool // what a broken reaper knew of the job before it read the row
}

// Move is what a reaper does with a row.
type Move int8

// The moves.
const (
	Rest Move = iota
	Expiring
	RingingIt
	PuttingOff
	Unparking
	Closing
	UsedUp
	Burying
	JobRead // of a broken reaper
)

// reaper is the steps of the reaper.
func (x *expansion) reaper() {
	r := x.s.Reaper
	switch r.Does {
	case Rest:
		x.sweep()
	case JobRead:
		n := *x.s
		n.Reaper = Sweep{}
		if r.Stop && (x.s.Row.Status == Pending || x.s.Row.Status == Parked) && !x.s.Row.Gone {
			n.Reaper = Sweep{Does: Closing, Seen: read(&x.s.Row)}
		}
		x.step(n, Reaper, Says{Text: "reaper reads the row after the job: {row}", Row: x.s.Row.Status})
	case Expiring:
		x.expiring(r)
	case RingingIt:
		x.ringing(r)
	case PuttingOff:
		x.move(r, OpPostpone, Sweep{}, "reaper puts the row off")
	case Unparking:
		x.move(r, OpUnpark, Sweep{Does: RingingIt}, "reaper unparks the row")
	case Closing, UsedUp:
		x.closing(r)
	case Burying:
		x.burying(r)
	}
	if r.Does != Rest && x.s.Left.ReaperCrashes > 0 {
		n := *x.s
		n.Left.ReaperCrashes--
		n.Reaper = Sweep{}
		x.step(n, Fault, Says{Text: "reaper is killed"})
	}
}

// sweep reads the row from the due index, and its job: Reaper.step and Reaper.closeRows. That both are read in one step
// loses nothing: what happens between the two readings changes the row, and then the write is refused, or it does not,
// and then the row might as well have been read with the job.
func (x *expansion) sweep() {
	row := &x.s.Row
	stop := x.s.stops()
	free := !row.Gone && (row.Status == Pending || row.Status == Parked)
	if stop && x.m.breaks(JobBeforeRow) {
		n := *x.s
		n.Reaper = Sweep{Does: JobRead, Stop: true}
		x.step(n, Reaper, Says{Text: "reaper reads the job: its rows are to be ended"})
	}
	if !row.Listed() || (!row.Due && !(free && stop)) {
		return
	}
	n := *x.s
	n.Reaper = Sweep{Seen: read(row)}
	says := Says{Row: row.Status, A: row.Gen}
	switch {
	case row.Status == Abandoned:
		n.Reaper.Does = Burying
		says.Text = "reaper finds an abandoned row without its dead letter"
	case row.Status == Claimed && x.m.breaks(NobodyExpires):
		return
	case row.Status == Claimed && x.m.breaks(ExhaustClaimed) && x.m.expirable(row, 0) && row.Att >= x.m.limit(x.s):
		n.Reaper.Does = UsedUp
		says.Text = "reaper finds the row used up, generation {a}"
	case row.Status == Claimed && x.m.expirable(row, 0):
		n.Reaper.Does = Expiring
		x.lossRecord(&n)
		says.Text = "reaper finds an expired claim, generation {a}, and writes its record: lost"
	case row.Status == Claimed:
		n.Reaper.Does = PuttingOff
		says.Text = "reaper finds a live claim, generation {a}"
	case stop:
		n.Reaper.Does = Closing
		says.Text = "reaper finds a {row} row of a job that is cancelled or late"
	case row.Status == Parked && x.s.Paused:
		n.Reaper.Does = PuttingOff
		says.Text = "reaper finds a parked row of a paused job"
	case row.Status == Parked && x.m.breaks(NobodyUnparks):
		n.Reaper.Does = PuttingOff
		says.Text = "reaper finds a parked row, and leaves it"
	case row.Status == Parked:
		n.Reaper.Does = Unparking
		says.Text = "reaper finds a parked row of a running job"
	case row.Att >= x.m.limit(x.s):
		n.Reaper.Does = UsedUp
		says.Text = "reaper finds the row used up, generation {a}"
	default:
		n.Reaper.Does = RingingIt
		says.Text = "reaper finds a pending row due, generation {a}"
	}
	x.step(n, Reaper, says)
}

// move is one write on condition of what was read, and what follows if it lands.
func (x *expansion) move(r Sweep, op Op, then Sweep, text string) bool {
	n := *x.s
	wr := r.Seen.write(op)
	lands := x.write(&n, wr)
	n.Reaper = Sweep{}
	if lands && then.Does != Rest {
		n.Reaper = then
		n.Reaper.Seen = read(&n.Row)
	}
	if !lands {
		text += ": refused"
	}
	step := x.step(n, Reaper, Says{Text: text})
	step.Write, step.Lands = wr, lands
	if lands {
		x.copied(n, wr, true)
	}
	return lands
}

// expiring is Reaper.expire after the record: the row, then the bell.
func (x *expansion) expiring(r Sweep) {
	n := *x.s
	wr, lands, bad := x.lossWrite(&n, r.Seen, 0)
	n.Reaper = Sweep{}
	says := Says{Text: "reaper's expire is refused"}
	if lands {
		switch {
		case n.Row.Status == Abandoned:
			n.Reaper = Sweep{Does: Burying, Seen: read(&n.Row)}
		case n.Row.Status == Pending && n.Row.Ready:
			n.Reaper = Sweep{Does: RingingIt, Seen: read(&n.Row)}
		}
		says = Says{Text: "reaper expires generation {a}: the row is {row}, attempts {b}, losses {c}", A: r.Seen.Gen, B: n.Row.Att, C: n.Row.Los, Row: n.Row.Status}
	}
	step := x.step(n, Reaper, says)
	step.Write, step.Lands, step.Bad = wr, lands, bad
	if lands {
		x.copied(n, wr, true)
	}
}

// lossRecord is the first half of Reaper.expire. It is written of what was read; that it is one step with the reading
// loses nothing, since a later claim has a record of its own.
func (x *expansion) lossRecord(n *World) {
	n.Ghost.ByExpirer = true
	n.Ghost.ByOwner = n.Ghost.ByOwner && !x.m.breaks(OneRecord)
}

// lossWrite is the write of Reaper.expire, by whoever runs that step: of the row as it stood when the time was taken
// (Reaper.claimed, Worker.refused), so that what the worker achieved since lets it be refused.
func (x *expansion) lossWrite(n *World, seen Reading, skew int8) (wr Write, lands bool, bad string) {
	wr = seen.write(OpExpire)
	wr.Skew, wr.V = skew, x.m.next(x.m.limit(x.s), seen.standing(), Died)
	if lands = x.write(n, wr); !lands {
		return wr, false, ""
	}
	bad = x.endedBy(n, Died, Standing{New: x.s.Row.New})
	if who, live := x.m.trusting(x.s); live && x.s.Worker[who].Gen == seen.Gen {
		bad = "P3 a claim is taken away while its worker may still start calls"
	}
	if !x.s.Ghost.ByExpirer {
		bad = "P4 an attempt was lost, and its record says something else, or is missing"
	}
	return wr, true, bad
}

// trusting is a worker that may start calls under the claim that the row shows.
func (m *Task) trusting(s *World) (int8, bool) {
	for i := range m.Workers {
		w := &s.Worker[i]
		if w.At == Working && w.Own > 0 && s.Row.Status == Claimed && s.Row.Gen == w.Gen && s.Row.Claim == w.Claim {
			return i, true
		}
	}
	return 0, false
}

// ringing is Reaper.ring: the row, then the message. Rings past MaxRings go on.
func (x *expansion) ringing(r Sweep) {
	n := *x.s
	if r.Part == 1 {
		n.send(r.Seen.Rung)
		n.Reaper = Sweep{}
		x.step(n, Reaper, Says{Text: "reaper sends the message"})
		return
	}
	wr := r.Seen.write(OpRing)
	wr.Count = min(r.Seen.Rings+1, x.m.MaxRings)
	lands := x.write(&n, wr)
	n.Reaper = Sweep{}
	text := "reaper's ring is refused"
	if lands {
		text = "reaper rings the row: ring {a} since the last claim"
		n.Reaper = Sweep{Does: RingingIt, Part: 1, Seen: read(&n.Row)}
	}
	step := x.step(n, Reaper, Says{Text: text, A: wr.Count})
	step.Write, step.Lands = wr, lands
	if lands {
		x.copied(n, wr, true)
	}
}

// closing is pipeline.CancelRow and Reaper.Exhaust.
func (x *expansion) closing(r Sweep) {
	n := *x.s
	wr, lands := x.closeWrite(&n, r.Seen, r.Does == UsedUp)
	n.Reaper = Sweep{}
	says := Says{Text: "reaper's close is refused"}
	if lands {
		says = Says{Text: "reaper closes the row: {row}", Row: n.Row.Status}
		if n.Row.Status == Abandoned {
			n.Reaper = Sweep{Does: Burying, Seen: read(&n.Row)}
		}
	}
	step := x.step(n, Reaper, says)
	step.Write, step.Lands = wr, lands
	if lands {
		step.Bad = x.closed(&n, r.Does == UsedUp)
		x.copied(n, wr, true)
	}
}

func (x *expansion) closeWrite(n *World, seen Reading, usedUp bool) (Write, bool) {
	wr := seen.write(OpClose)
	switch {
	case usedUp:
		wr.V = x.m.next(x.m.limit(x.s), seen.standing(), Failed)
		if seen.Acc >= x.m.Stages && x.m.breaks(FinishedIsAbandoned) {
			wr.V.Status = Abandoned
		}
	case seen.Acc >= x.m.Stages:
		wr.V.Status = Done
	default:
		wr.V.Status = Cancelled
	}
	return wr, x.write(n, wr)
}

// closed says what is wrong about a row that was closed.
func (x *expansion) closed(n *World, usedUp bool) string {
	before := &x.s.Row
	switch {
	case before.Status == Claimed:
		return "P4 an attempt is ended without a record of it"
	case usedUp && n.Row.Status == Abandoned && x.s.Ghost.Counted < x.m.limit(x.s):
		return "P6 given up before its attempts were used up"
	case !usedUp && !x.s.Cancel && !x.s.Over:
		return "P5 a row is ended for its job's sake, and the job runs: a redrive is undone"
	}
	return ""
}

// burying is Reaper.Bury.
func (x *expansion) burying(r Sweep) {
	n := *x.s
	if r.Part == 0 {
		n.Ghost.LetterSent = n.Ghost.LetterSent || (x.s.Row.Status == Abandoned && x.s.Row.Gen == r.Seen.Gen)
		n.Reaper.Part = 1
		x.step(n, Reaper, Says{Text: "reaper sends the dead letter of generation {a}", A: r.Seen.Gen})
		return
	}
	x.move(r, OpBuried, Sweep{}, "reaper marks the dead letter as sent")
}

// meet is a worker that runs the reaper's step on a row in its way.
func (x *expansion) meet(i int8, w Worker) {
	n := *x.s
	switch w.At {
	case LossWrite:
		wr, lands, bad := x.lossWrite(&n, w.Seen, x.m.Skew[i])
		n.Worker[i] = Worker{At: Asking, Bell: w.Bell, Claim: x.s.freshClaim(), Alone: w.Alone}
		switch {
		case lands && n.Row.Status == Abandoned:
			n.Worker[i] = Worker{At: Letter, Bell: w.Bell, Gen: n.Row.Gen}
		case lands && n.Row.Status == Pending && n.Row.Ready:
			n.Worker[i].At, n.Worker[i].Seen = LossRing, read(&n.Row)
		}
		step := x.step(n, x.by(i), Says{Text: "{who} expires generation {a} (landed: {b}): the row is {row}", Who: i, A: w.Seen.Gen, B: yes(lands), Row: n.Row.Status})
		step.Write, step.Lands, step.Bad = wr, lands, bad
	case LossRing:
		wr := w.Seen.write(OpRing)
		wr.Count = min(w.Seen.Rings+1, x.m.MaxRings)
		lands := x.write(&n, wr)
		n.Worker[i].At, n.Worker[i].Seen = LossSending, read(&n.Row)
		if !lands {
			n.Worker[i].At, n.Worker[i].Seen = Asking, Reading{}
		}
		step := x.step(n, x.by(i), Says{Text: "{who} rings the row that it expired", Who: i})
		step.Write, step.Lands = wr, lands
	case LossSending:
		n.send(w.Seen.Rung)
		n.Worker[i].At, n.Worker[i].Seen = Asking, Reading{}
		x.step(n, x.by(i), Says{Text: "{who} sends the message", Who: i})
	case Exhausting:
		wr, lands := x.closeWrite(&n, w.Seen, true)
		n.Worker[i] = Worker{At: Deleting, Bell: w.Bell}
		bad := ""
		if lands {
			bad = x.closed(&n, true)
			if n.Row.Status == Abandoned {
				n.Worker[i] = Worker{At: Letter, Bell: w.Bell, Gen: n.Row.Gen}
			}
		}
		step := x.step(n, x.by(i), Says{Text: "{who} closes the row that is used up (landed: {b}): {row}", Who: i, B: yes(lands), Row: n.Row.Status})
		step.Write, step.Lands, step.Bad = wr, lands, bad
	}
}

func yes(b bool) int8 {
	if b {
		return 1
	}
	return 0
}
