package simulation_test

import (
	"slices"
	"testing"

	"holdfast/pkg/simulation"
)

// baseSeeds are the worlds whose every call gets every fault: one whose answers come quickly, one whose take long and
// which shares a limiter.
var baseSeeds = []uint64{3, 8}

// forced runs, for every kind of fault, a world for every call of a base world at which it may happen: nothing goes
// wrong in it but that. It does one in stride of them, beginning with the one numbered from, until run says that it is
// enough; points is how many those are.
func forced(t *testing.T, from, stride int, run func(simulation.Spec) bool) (points int) {
	t.Helper()
	n, goes := 0, true
	for _, seed := range baseSeeds {
		base := simulation.NewSpec(seed)
		base.Faults, base.Survey = false, true
		at := simulation.Run(t, base).ForcedAt
		for _, kind := range simulation.Kinds() {
			for _, event := range slices.Compact(at[kind]) {
				n++
				if n%stride != from%stride {
					continue
				}
				points++
				spec := simulation.NewSpec(seed)
				spec.Fixed = []simulation.Fault{{N: event, Kind: kind}}
				goes = goes && run(spec)
			}
		}
	}
	return points
}

// TestEveryFaultAtEveryCall is the part of it that every test run does: one point in eighty.
func TestEveryFaultAtEveryCall(t *testing.T) {
	ran := 0
	forced(t, 1, 80, func(spec simulation.Spec) bool {
		ran++
		out := simulation.Run(t, spec)
		if out.Broken != nil {
			t.Errorf("%s", simulation.Shrink(t, out).Story())
		}
		if len(out.Fired) != 1 {
			t.Errorf("%s: %d faults happened, want the one that was forced", spec.Command(), len(out.Fired))
		}
		return out.Broken == nil
	})
	if ran < 20 {
		t.Errorf("only %d points were tried", ran)
	}
}
