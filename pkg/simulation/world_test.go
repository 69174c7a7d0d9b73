package simulation_test

import (
	"testing"

	"holdfast/pkg/simulation"
)

func calmSpec(seed uint64) simulation.Spec {
	spec := simulation.NewSpec(seed)
	spec.Faults = false
	return spec
}

func TestWithoutFaultsEveryWorldEndsWell(t *testing.T) {
	for seed := range uint64(20) {
		out := simulation.Run(t, calmSpec(seed))
		if out.Broken != nil {
			for _, e := range out.History.Events {
				t.Log(e)
			}
			t.Fatalf("seed %d: %s", seed, out.Broken)
		}
		t.Logf("seed %d: %d events, %v, %s", seed, len(out.History.Events), out.Virtual, out.End)
	}
}

func TestOneSeedIsOneHistory(t *testing.T) {
	const replays = 200
	spec := simulation.NewSpec(7)
	first := simulation.Run(t, spec)
	for n := range replays {
		if again := simulation.Run(t, spec); again.History.Hash() != first.History.Hash() {
			t.Fatalf("replay %d is another history", n)
		}
	}
}
