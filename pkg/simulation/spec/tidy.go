package spec

// tidy takes out of a state what nobody can tell any more, so that equal states are equal.
func (m *Task) tidy(s *World) {
	r := &s.Row
	if r.Status != Claimed {
		r.Left = 0
	}
	if r.Status.Ended() || r.Gone {
		r.Ready = false
	}
	if r.Status == Done || r.Status == Cancelled {
		r.Due = false
	}
	if r.Status != Claimed {
		s.Ghost.ByOwner, s.Ghost.ByExpirer = false, false
	}
	m.forget(s)
	named := func(id int8) bool {
		for i := range s.Worker {
			if s.Worker[i].Claim == id {
				return true
			}
		}
		return s.Late.Claim == id
	}
	if r.Status != Claimed && !named(r.Claim) {
		r.Claim = 0
	}
	if !named(r.EndedBy) {
		r.EndedBy = 0
	}
	if m.Symmetric {
		m.sort(s)
	}
	if a, b := s.Bells[0], s.Bells[1]; a.Who == 0 && b.Who == 0 && b.before(a) {
		s.Bells[0], s.Bells[1] = b, a
	}
}

// forget takes out what can have no effect any more: readings whose write will be refused, late copies of a write that
// a later one has overtaken. Not in a broken model, where they may have one, nor in a walk that is to see them refused.
func (m *Task) forget(s *World) {
	s.Reaper.Seen = s.Reaper.Seen.needed(moveOps[s.Reaper.Does], s.Reaper.Does == RingingIt && s.Reaper.Part == 1)
	for i := range m.Workers {
		w := &s.Worker[i]
		w.Seen = w.Seen.needed(placeOps[w.At], w.At == RingSending || w.At == LossSending)
	}
	if m.Deep > 0 {
		return
	}
	m.forgetExpiries(s)
	if m.Broken != Nothing {
		return
	}
	late, r := &s.Late, &s.Row
	switch late.Op {
	case OpClaim, OpRenew, OpCheckpoint, OpEnd, OpExpire, OpBuried, OpRedrive:
		if late.Gen < r.Gen || r.Gone {
			*late = Write{}
		}
		if late.needsClaim() && r.Status != Claimed { // the next claim has another generation
			*late = Write{}
		}
	case OpRing, OpPostpone, OpUnpark, OpClose:
		if !late.Same || r.Gone {
			*late = Write{}
		}
	}
}

// forgetExpiries takes out what expiries are based on once they will be refused: a claim that was renewed since, a stage
// that was accepted, another generation. In a broken model some of them might still land; it has fewer histories.
func (m *Task) forgetExpiries(s *World) {
	if m.breaks(ExpiredAsIndexed) { // refused now, it may land later
		return
	}
	lands := func(w Write, skew int8) bool {
		w.Skew = skew
		return !s.Row.Gone && m.allows(&s.Row, w)
	}
	if s.Reaper.Does == Expiring && !lands(s.Reaper.Seen.write(OpExpire), 0) {
		s.Reaper.Seen = Reading{}
	}
	for i := range m.Workers {
		if w := &s.Worker[i]; w.At == LossWrite && !lands(w.Seen.write(OpExpire), m.Skew[i]) {
			w.Seen = Reading{}
		}
	}
	if s.Late.Op == OpExpire && !lands(s.Late, s.Late.Skew) {
		s.Late = Write{}
	}
}

// needsClaim says that the write is about a row that is claimed.
func (w Write) needsClaim() bool {
	return w.Op == OpRenew || w.Op == OpCheckpoint || w.Op == OpEnd || w.Op == OpExpire
}

// The writes that what was read is for.
var (
	moveOps  = [...]Op{Expiring: OpExpire, RingingIt: OpRing, PuttingOff: OpPostpone, Unparking: OpUnpark, Closing: OpClose, UsedUp: OpClose, Burying: OpBuried, JobRead: NoOp}
	placeOps = [...]Op{LossWrite: OpExpire, LossRing: OpRing, LossSending: OpRing, Ringing: OpRing, RingSending: OpRing, Exhausting: OpClose, lastPlace: NoOp}
)

// needed is what of a reading its write still needs.
func (r Reading) needed(op Op, rung bool) Reading {
	switch {
	case rung:
		return Reading{Rung: r.Rung}
	case op == OpExpire:
		r.Rings, r.Same = 0, false
		return r
	case op == OpBuried:
		return Reading{Gen: r.Gen}
	case op == OpClose && r.Same:
		return r
	case op == OpClose:
		return Reading{Status: r.Status, Gen: r.Gen, Att: r.Att, Acc: r.Acc}
	case r.Same:
		return Reading{Status: r.Status, Gen: r.Gen, Rings: r.Rings, Same: true}
	}
	return Reading{}
}

func (b Bell) before(a Bell) bool {
	if b.At != a.At {
		return b.At > a.At
	}
	if b.Old != a.Old {
		return a.Old
	}
	return b.Recv > a.Recv
}

// sort puts interchangeable workers in order.
func (m *Task) sort(s *World) {
	for i := int8(1); i < m.Workers; i++ {
		for j := i; j > 0 && less(&s.Worker[j], &s.Worker[j-1]); j-- {
			s.Worker[j], s.Worker[j-1] = s.Worker[j-1], s.Worker[j]
			for b := range s.Bells {
				switch s.Bells[b].Who {
				case j:
					s.Bells[b].Who = j + 1
				case j + 1:
					s.Bells[b].Who = j
				}
			}
		}
	}
}

func less(a, b *Worker) bool {
	x := [...]int8{int8(a.At), a.Bell, a.Gen, a.Claim, a.Own, int8(a.Out), a.Stand.Acc, a.Stand.Att, a.Stand.Def, a.Stand.Los, a.Asked, a.Allowed, a.Used}
	y := [...]int8{int8(b.At), b.Bell, b.Gen, b.Claim, b.Own, int8(b.Out), b.Stand.Acc, b.Stand.Att, b.Stand.Def, b.Stand.Los, b.Asked, b.Allowed, b.Used}
	for i := range x {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return false
}
