package spec

import "fmt"

// Check says which promise a step from before to s breaks.
func (m *Task) Check(before, s *World) string {
	a, b := &before.Row, &s.Row
	if b.Gone {
		return ""
	}
	redriven := before.Ghost.Redriven != s.Ghost.Redriven
	switch {
	case a.Status.Ended() && b.Status != a.Status && !redriven:
		return fmt.Sprintf("P5 a row that was %s is %s", a.Status, b.Status)
	case b.Gen < a.Gen:
		return "P2 a generation goes back"
	case b.Acc < a.Acc && !redriven:
		return "P2 an accepted stage is taken back"
	case b.Status == Done && b.Acc < m.Stages:
		return "P1 done, and a stage is missing"
	case (b.Status == Abandoned || b.Status == Cancelled) && b.Acc >= m.Stages:
		return fmt.Sprintf("P8 every stage is accepted, and the row is %s", b.Status)
	case b.Att < 0 || b.Att > m.MaxAttempts:
		return fmt.Sprintf("P7 %d attempts, of at most %d", b.Att, m.MaxAttempts)
	case b.Def > m.MaxDeferrals:
		return fmt.Sprintf("P7 %d deferrals, of at most %d", b.Def, m.MaxDeferrals)
	case s.Ghost.Counted > m.MaxAttempts:
		return fmt.Sprintf("P7 counted attempt number %d of a stage, and %d are allowed", s.Ghost.Counted, m.MaxAttempts)
	case b.Gen > m.claimsAtMost(s):
		return fmt.Sprintf("P7 claimed %d times, and %d are possible", b.Gen, m.claimsAtMost(s))
	case b.Buried && b.Status == Abandoned && !s.Ghost.LetterSent:
		return "P4 marked as in the dead letters, and its letter was never sent"
	}
	for n := range a.Acc {
		if b.Body[n] != a.Body[n] && !redriven {
			return "P2 an accepted result is replaced"
		}
	}
	return m.checkCalls(s)
}

// checkCalls is about those who may call.
func (m *Task) checkCalls(s *World) string {
	r := &s.Row
	if m.TryCap > 0 && s.Ghost.Sent > r.Allowed {
		return fmt.Sprintf("P3 %d tries sent, and %d allowed", s.Ghost.Sent, r.Allowed)
	}
	if r.Allowed > r.MaxTries {
		return fmt.Sprintf("P3 %d tries allowed, of at most %d", r.Allowed, r.MaxTries)
	}
	live := 0
	for i := range m.Workers {
		if w := &s.Worker[i]; w.At == Working && w.Own > 0 {
			live++
		}
	}
	if live > 1 {
		return "P3 two workers may start calls of one task"
	}
	return ""
}

// claimsAtMost is how high a generation may be: of every way to end a claim that leaves the row to be claimed again there
// is a number (see TestEveryWalkOfARowEnds in pkg/memory), and a redrive begins anew.
func (m *Task) claimsAtMost(s *World) int8 {
	lives := s.Ghost.Redriven + 1
	once := m.Stages*(m.MaxAttempts-1) + 1 + m.MaxDeferrals
	return lives*once + s.Ghost.Answers + s.Ghost.Parks + s.Ghost.Redriven
}
