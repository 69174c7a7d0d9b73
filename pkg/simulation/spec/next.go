package spec

// Outcome is how an attempt ended.
type Outcome int8

// The outcomes. Shut is a deferral that waits for nothing: the worker was asked to stop.
const (
	OK Outcome = iota
	Failed
	Deferral
	Shut
	Permanent
	Stopped
	ParkedNow
	Overran
	Died
)

func (o Outcome) String() string {
	return [...]string{"success", "failure", "deferral", "shutdown", "permanent failure", "cancelled", "paused", "timed out", "lost"}[o]
}

// Standing is pipeline.Standing.
type Standing struct {
	Att, Def, Los, Acc int8
	New                bool
}

// Verdict is pipeline.Verdict.
type Verdict struct {
	Status        Status
	Att, Def, Los int8
	Wait, Counted bool
}

// lossesForgiven is pipeline's: the next loss counts whatever was achieved.
const lossesForgiven = 2

// next is pipeline.Next, written from its comment. limit is MaxAttempts of the policy as it is now.
func (m *Task) next(limit int8, s Standing, o Outcome) Verdict {
	if m.breaks(CountedAfter) && o != Died { // whoever dies counts nothing
		s.Att++
	}
	v := Verdict{Status: Pending, Att: s.Att, Def: s.Def, Los: s.Los}
	refunded := max(0, s.Att-1)
	if m.breaks(NotRefunded) {
		refunded = s.Att
	}
	if m.breaks(RefundedTwice) {
		refunded = s.Att - 2
	}
	if o == Died {
		v.Los++
	}
	forgiven := o == Deferral || o == Shut || (o == Died && s.New && (v.Los <= lossesForgiven || m.breaks(LossesForgiven)))
	switch {
	case s.Acc >= m.Stages && !m.breaks(FinishedIsAbandoned):
		v.Status = Done
	case o == Permanent:
		v.Status, v.Counted = Abandoned, true
	case o == Stopped:
		v.Status = Cancelled
	case o == ParkedNow:
		v.Status, v.Att = Parked, refunded
	case o == Overran && s.New:
		v.Att = refunded
	case forgiven && (s.Def < m.MaxDeferrals || m.breaks(DeferralsUnbounded)):
		v.Att, v.Def = refunded, s.Def+1
		v.Wait = o == Deferral
	case s.Att < limit:
		v.Counted = true
		v.Wait = o != Died || v.Los > lossesForgiven
	default:
		v.Status, v.Counted = Abandoned, true
	}
	return v
}
