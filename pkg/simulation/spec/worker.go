package spec

// At is where a worker is.
type At int8

// The places, in the order of work.Worker.Deliver.
const (
	Idle        At = iota
	Asking         // has a delivery and claims
	ClaimSent      // its claim landed and the answer was lost: sends the same again
	Working        // may start calls while it trusts its claim
	RenewSent      // a renewal landed, its answer was lost
	AcceptSent     // a checkpoint landed, its answer was lost
	Halted         // its claim is lost, or so it thinks: no new call, then it ends
	Ending         // has written the record; writes the end
	Ringing        // ended as a shutdown: rings the row itself
	RingSending    //
	Letter         // the row is abandoned: sends the dead letter
	Marking        // and marks it
	Deleting       // deletes its delivery
	LossWrite      // met an expired claim and wrote its record: reap.Reaper.Expire
	LossRing       // then the bell
	LossSending    //
	Exhausting     // met an exhausted row: reap.Reaper.Exhaust
	lastPlace
)

// Worker is a worker and its one claim.
type Worker struct {
	At    At
	Bell  int8 // slot + 1 of its delivery
	Claim int8
	Gen   int8 // of its claim; before, the one it claims from
	Stand Standing
	Own   int8 // ticks for which it trusts its claim
	Asked int8 // the expiry that a renewal without an answer asked for, in ticks from now
	// Tries: allowed so far as it knows, and taken.
	Allowed, Used int8
	Alone         bool
	Out           Outcome
	Seen          Reading
}

// worker is the steps of one worker.
func (x *expansion) worker(i int8) {
	w := x.s.Worker[i]
	switch w.At {
	case Idle:
		x.receive(i)
	case Asking:
		x.claim(i, w)
	case ClaimSent:
		x.claimAgain(i, w)
	case Working:
		x.work(i, w)
	case RenewSent:
		x.renewAgain(i, w)
	case AcceptSent:
		x.acceptAgain(i, w)
	case Halted:
		x.decide(i, w, Deferral)
	case Ending:
		x.end(i, w)
	case Ringing, RingSending:
		x.ringItself(i, w)
	case Letter, Marking, Deleting:
		x.leave(i, w)
	default:
		x.meet(i, w)
	}
	if w.At != Idle && x.s.Left.Crashes > 0 {
		n := *x.s
		n.Left.Crashes--
		n.Worker[i] = Worker{}
		for b := range n.Bells { // its delivery comes back when its visibility is over
			if n.Bells[b].Who == i+1 {
				n.Bells[b].Who = 0
			}
		}
		x.step(n, Fault, Says{Text: "{who} is killed", Who: i})
	}
}

func (x *expansion) by(i int8) Actor { return Worker0 + Actor(i) }

// back leaves the delivery, to be visible later: Worker.delay.
func back(n *World, i int8) {
	if b := n.Worker[i].Bell; b > 0 && n.Bells[b-1].Who == i+1 {
		n.Bells[b-1].Who = 0
	}
	n.Worker[i] = Worker{}
}

// receive is Queue.Receive, and the queue's own limit of receives.
func (x *expansion) receive(i int8) {
	for b := range x.s.Bells {
		bell := x.s.Bells[b]
		if bell.At != 1 {
			continue
		}
		n := *x.s
		if x.m.MaxReceives > 0 && bell.Recv >= x.m.MaxReceives {
			n.Bells[b] = Bell{}
			x.step(n, x.by(i), Says{Text: "the queue moves a message to its dead letters (row {row})", Row: x.s.Row.Status})
			continue
		}
		if x.m.MaxReceives > 0 {
			n.Bells[b].Recv++
		}
		n.Bells[b].At, n.Bells[b].Who = 2, i+1
		n.Worker[i] = Worker{At: Asking, Bell: int8(b) + 1, Claim: x.s.freshClaim()}
		x.step(n, x.by(i), Says{Text: "{who} receives a message", Who: i})
	}
}

// barred is Worker.skew: the clock differs too much from the store's.
func (x *expansion) barred(i int8) bool {
	skew := x.m.Skew[i]
	return x.m.MaxSkew > 0 && 2*max(skew, -skew) > x.m.MaxSkew && !x.m.breaks(SkewIsNotBarred)
}

// claim is Worker.claimOnce, and what Worker.claim and Worker.refused make of a refusal.
func (x *expansion) claim(i int8, w Worker) {
	n := *x.s
	if x.barred(i) {
		back(&n, i)
		x.step(n, x.by(i), Says{Text: "{who}'s clock differs too much; it claims nothing", Who: i})
		return
	}
	wr := Write{Op: OpClaim, Gen: x.s.Row.Gen, Claim: w.Claim, Left: x.m.TTL + x.m.Skew[i], Alone: w.Alone, Cap: x.m.limit(x.s)}
	if !x.write(&n, wr) {
		x.refused(i, w, wr)
		return
	}
	x.counted(&n)
	r := &n.Row
	n.Worker[i] = Worker{
		At: Working, Bell: w.Bell, Claim: w.Claim, Gen: r.Gen, Own: x.m.TTL, Allowed: r.Allowed, Used: r.Allowed,
		Stand: Standing{Att: r.Att, Def: r.Def, Los: r.Los, Acc: r.Acc},
	}
	says := Says{Text: "{who} claims: generation {a}, attempts {b}, accepted {c}", Who: i, A: r.Gen, B: r.Att, C: r.Acc}
	bad := ""
	if x.s.Row.Gone {
		bad = "P5 a row that was deleted is back, as a ghost"
	}
	if r.Att > wr.Cap {
		bad = "P7 claimed although its attempts are used up"
	}
	step := x.step(n, x.by(i), says)
	step.Write, step.Lands, step.Bad = wr, true, bad
	if x.s.Left.LostAnswers > 0 {
		lost := n
		lost.Left.LostAnswers--
		lost.Worker[i] = Worker{At: ClaimSent, Bell: w.Bell, Claim: w.Claim, Gen: wr.Gen, Own: x.m.TTL, Alone: w.Alone}
		step := x.step(lost, Fault, Says{Text: "{who}'s claim lands (generation {a}, attempts {b}), its answer is lost", Who: i, A: r.Gen, B: r.Att})
		step.Write, step.Lands = wr, true
	}
	x.copied(n, wr, true)
	if x.s.Left.LateCopies > 0 && x.s.Late.Op == NoOp { // it has not landed yet, and the worker gives up
		gone := *x.s
		gone.Left.LateCopies--
		gone.Late = wr
		back(&gone, i)
		x.step(gone, Fault, Says{Text: "{who}'s claim is delayed in the network; {who} gives up", Who: i})
	}
}

// counted keeps the world's own count of a claim.
func (x *expansion) counted(n *World) {
	n.Ghost.Counted++
	n.Ghost.ByOwner, n.Ghost.ByExpirer = false, false
}

// copied adds a step after which a copy of a write is still in the network.
func (x *expansion) copied(n World, wr Write, landed bool) {
	if x.s.Left.LateCopies == 0 || x.s.Late.Op != NoOp {
		return
	}
	n.Left.LateCopies--
	n.Late = wr
	if wr.setsDue() {
		n.Late.Same = false // the first one has set it
	}
	step := x.step(n, Fault, Says{Text: "the same, and a copy of the write is still in the network"})
	step.Write, step.Lands = wr, landed
}

// refused is the order of pipeline.WhyRefused, and the table of Worker.Deliver.
func (x *expansion) refused(i int8, w Worker, wr Write) {
	n := *x.s
	r := &x.s.Row
	old := w.Bell > 0 && x.s.Bells[w.Bell-1].Old
	delete := func() { n.Worker[i] = Worker{At: Deleting, Bell: w.Bell} }
	says := Says{Who: i, Row: r.Status, A: r.Gen}
	switch {
	case r.Gone:
		delete()
		says.Text = "{who} finds no row"
	case r.Status.Ended(), r.Status == Parked:
		delete()
		says.Text = "{who} finds the row {row}"
	case r.Status == Claimed && r.Att >= x.m.limit(x.s) && x.m.breaks(ExhaustClaimed) && x.m.expirable(r, x.m.Skew[i]):
		n.Worker[i] = Worker{At: Exhausting, Bell: w.Bell, Seen: read(r)}
		says.Text = "{who} finds the row used up (generation {a})"
	case r.Status == Claimed && x.m.expirable(r, x.m.Skew[i]) && !x.m.breaks(NobodyExpires):
		n.Worker[i] = Worker{At: LossWrite, Bell: w.Bell, Seen: read(r)}
		x.lossRecord(&n)
		says.Text = "{who} meets an expired claim (generation {a}) and writes its record: lost"
	case r.Status == Pending && r.Ready && r.Att >= x.m.limit(x.s):
		n.Worker[i] = Worker{At: Exhausting, Bell: w.Bell, Seen: read(r)}
		says.Text = "{who} finds the row used up (generation {a})"
	case r.Status == Pending && r.Ready && r.Los >= lossesForgiven && !w.Alone:
		n.Worker[i].Alone = true // crew.lone: waits until it holds no other claim
		says.Text = "{who} finds a row that was lost twice: alone, then"
	case old:
		delete()
		says.Text = "{who} has an old message of a row that is {row} and cannot be claimed"
	default:
		back(&n, i)
		says.Text = "{who}: held or early (row {row}, generation {a}); the message is put off"
	}
	x.step(n, x.by(i), says).Write = wr
}

// claimAgain is the second sending of a claim whose answer was lost: pipeline.ClaimWrite.Landed.
func (x *expansion) claimAgain(i int8, w Worker) {
	n := *x.s
	r := &x.s.Row
	wr := Write{Op: OpClaim, Gen: w.Gen, Claim: w.Claim, Left: w.Own + x.m.Skew[i], Alone: w.Alone, Cap: x.m.limit(x.s)}
	own := !r.Gone && r.Status == Claimed && r.Claim == w.Claim
	switch {
	case own && w.Own > 0 && !x.m.breaks(LostClaimIsAnothers):
		n.Worker[i] = Worker{
			At: Working, Bell: w.Bell, Claim: w.Claim, Gen: r.Gen, Own: w.Own, Allowed: r.Allowed, Used: r.Allowed,
			Stand: Standing{Att: r.Att, Def: r.Def, Los: r.Los, Acc: r.Acc},
		}
		x.step(n, x.by(i), Says{Text: "{who}'s claim is refused, and the row shows it: it landed", Who: i}).Write = wr
	case own && w.Own > 0:
		back(&n, i)
		step := x.step(n, x.by(i), Says{Text: "{who} takes its own claim for another's and leaves it", Who: i})
		step.Bad = "P6 a healthy worker leaves the claim that it holds to lapse"
	case own:
		back(&n, i)
		x.step(n, x.by(i), Says{Text: "{who}'s claim landed too long ago: held", Who: i}).Write = wr
	default:
		n.Worker[i] = Worker{At: Asking, Bell: w.Bell, Claim: x.s.freshClaim(), Alone: w.Alone}
		x.step(n, x.by(i), Says{Text: "{who}'s claim is refused (row {row}, generation {a}); it looks again", Who: i, Row: r.Status, A: r.Gen}).Write = wr
	}
}
