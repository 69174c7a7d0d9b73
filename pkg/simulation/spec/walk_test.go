package spec

import (
	"strings"
	"testing"
)

// A walk that chance does not take: a claim that lapsed is renewed by its worker, and has lapsed again, when the expiry
// that was decided on the first time arrives.
func TestTheStoreRefusesAnExpiryOfARowAsItStoodBefore(t *testing.T) {
	m := &Task{Bounds: small(1, func(b *Bounds) { b.Stages, b.MaxAttempts, b.MaxDeferrals, b.Answers, b.Deep = 1, 1, 1, 1, 100 })}
	r := newReplay(t, m)
	state := m.Start()
	for _, says := range []string{
		"A receives", "A claims", "A stores a new answer", tick, tick, "due_at passes", "reaper finds an expired claim",
		"A renews", tick, tick, "reaper's expire is refused", "due_at passes", "reaper finds an expired claim", "reaper expires",
	} {
		took := false
		for _, step := range m.Next(&state, nil) {
			if took = strings.HasPrefix(step.Says.String(), says); took {
				r.step(&state, step)
				state = step.To
				break
			}
		}
		if !took && !(says == "due_at passes" && state.Row.Due) {
			r.fail("no step says %q of %s", says, m.Show(&state))
		}
	}
	if state.Row.Status != Pending || state.Row.Def != 1 || state.Row.Att != 0 {
		t.Errorf("%s; want the deferral that its answer makes of the loss", m.Show(&state))
	}
}
