//go:build !race

package simulation_test

import (
	"testing"

	"holdfast/pkg/simulation"
)

func TestEveryKindOfFaultIsForcedAtEveryWriteThatWorldsMake(t *testing.T) {
	report, has := someWorlds(t).report, map[string]bool{}
	for _, p := range points(t) {
		has[p.op+string(p.kind)] = true
	}
	if len(report.Writes) < 25 {
		t.Errorf("the worlds make only the writes %v", report.Writes)
	}
	for write, kinds := range report.AtWrites() {
		for _, kind := range kinds {
			if !has[write+string(kind)] {
				t.Errorf("%q is forced at no %s: a scene is missing in which it is written", kind, write)
			}
		}
	}
}

// TestOneInEightyOfTheForcedFaults is the part of make sim's that every test run does.
func TestOneInEightyOfTheForcedFaults(t *testing.T) {
	ran := 0
	forced(t, 1, 80, func(spec simulation.Spec) bool {
		ran++
		out := simulation.Run(t, spec)
		if out.Broken != nil {
			t.Errorf("%s", simulation.Shrink(t, out).Story())
		}
		if len(out.Fired) != len(spec.Fixed) {
			t.Errorf("%s: %d faults happened, want the %d that were forced", spec.Command(), len(out.Fired), len(spec.Fixed))
		}
		return out.Broken == nil
	})
	if ran < 20 {
		t.Errorf("only %d points were tried", ran)
	}
}
