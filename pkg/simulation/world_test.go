package simulation_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/pkg/simulation"
)

func specOf(t *testing.T) simulation.Spec {
	t.Helper()
	spec := simulation.NewSpec(*seed)
	spec.Chunks, spec.Stages, spec.Calls, spec.Workers, spec.Calm = *chunks, *stages, *calls, *workers, *calm
	switch *faults {
	case "":
	case "none":
		spec.Fixed = []simulation.Fault{}
	default:
		fixed, err := simulation.ParseFaults(*faults)
		if err != nil {
			t.Fatal(err)
		}
		spec.Fixed = fixed
	}
	return spec
}

// TestWorld replays one world and tells its story.
func TestWorld(t *testing.T) {
	if *seed == 0 {
		t.Skip("of one seed: go test ./pkg/simulation -run 'TestWorld$' -v -seed N")
	}
	out := simulation.Run(t, specOf(t))
	fmt.Println(out.Story())
	if out.Broken != nil {
		t.Fatal(out.Broken)
	}
	fmt.Printf("every promise was kept: %s\n", out.End)
}

// told is the story of a broken world, as short as it can be.
func told(t *testing.T, out simulation.Outcome) string {
	t.Helper()
	found := fmt.Sprintf("as found: %s\n  %s\n", out.Spec.Command(), out.Broken)
	if !*shrink {
		return found
	}
	return found + simulation.Shrink(t, out).Story()
}

// TestWorlds runs worlds one after the other and stops at the first that breaks a promise.
func TestWorlds(t *testing.T) {
	begin := time.Now()
	for n := range *worlds {
		if !until(begin) {
			t.Logf("stopped after %d worlds by the time given", n)
			return
		}
		out := simulation.Run(t, simulation.NewSpec(*first+uint64(n)))
		if out.Broken != nil {
			t.Fatalf("world %d of %d broke a promise: %s\n%s", n+1, *worlds, out.Broken, told(t, out))
		}
	}
}

func TestWithoutFaultsEveryJobIsCompleted(t *testing.T) {
	for n := range uint64(30) {
		spec := simulation.NewSpec(firstSeed + n)
		spec.Faults = false
		if out := simulation.Run(t, spec); out.Broken != nil {
			t.Fatal(out.Story())
		}
	}
}

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

func TestThePoliciesOfWorldsAreValid(t *testing.T) {
	for n := range uint64(200) {
		for deploy := range 4 {
			if err := simulation.NewSpec(n).Policy(deploy).Validate(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
