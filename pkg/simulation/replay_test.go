//go:build !race

package simulation_test

import (
	"testing"

	"holdfast/pkg/simulation"
)

// historyOf is a world's history, as two of its runs have it.
func historyOf(t *testing.T, spec simulation.Spec) (uint64, simulation.Outcome) {
	t.Helper()
	seen := map[uint64]bool{}
	for range 10 {
		out := simulation.Run(t, spec)
		if hash := out.History.Hash(); seen[hash] {
			return hash, out
		}
		seen[out.History.Hash()] = true
	}
	t.Fatalf("seed %d: ten runs, ten histories", spec.Seed)
	return 0, simulation.Outcome{}
}

// replays says that a world has this history. A run that is another proves nothing if the machine stalled in it.
func replays(t *testing.T, spec simulation.Spec, want uint64) bool {
	t.Helper()
	for range 5 {
		out := simulation.Run(t, spec)
		if out.History.Hash() == want {
			return true
		}
		if !out.Disturbed {
			return false
		}
	}
	return false
}

func TestOneSeedIsOneHistory(t *testing.T) {
	spec := simulation.NewSpec(7)
	want, _ := historyOf(t, spec)
	for n := range 200 {
		if !replays(t, spec, want) {
			t.Fatalf("replay %d is another history", n)
		}
	}
	hashes := map[uint64]bool{}
	for n := range uint64(50) {
		hashes[simulation.Run(t, simulation.NewSpec(1000+n)).History.Hash()] = true
	}
	if len(hashes) != 50 {
		t.Errorf("50 seeds have %d histories", len(hashes))
	}
}

func TestFaultsThatArePrintedReplayTheHistory(t *testing.T) {
	for n := range uint64(30) {
		want, out := historyOf(t, simulation.NewSpec(2000+n))
		spec := out.Spec
		spec.Fixed = append([]simulation.Fault{}, out.Fired...)
		if !replays(t, spec, want) {
			t.Errorf("seed %d: its faults make another history of it", out.Spec.Seed)
		}
	}
}
