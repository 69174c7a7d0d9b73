package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/simulation"
)

// TestWorld replays one world and tells its story.
func TestWorld(t *testing.T) {
	if one.seed == 0 {
		t.Skip("of one seed: go test ./pkg/simulation -run 'TestWorld$' -v -seed N")
	}
	spec, err := one.world()
	if err != nil {
		t.Fatal(err)
	}
	out := simulation.Run(t, spec)
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

// sample is what some worlds came to, and the calls of ports in them that went well, by their names.
type sample struct {
	report *simulation.Report
	calls  simulation.Tally
}

var drawn *sample

// someWorlds runs them once, for all tests that want to know what worlds do.
func someWorlds(t *testing.T) *sample {
	t.Helper()
	if drawn != nil {
		return drawn
	}
	drawn = &sample{report: simulation.NewReport(), calls: simulation.Tally{}}
	for n := range uint64(60) {
		out := simulation.Run(t, simulation.NewSpec(firstSeed+n))
		drawn.report.Count(out)
		for _, e := range out.History.Events {
			if e.Who != "world" && e.Err == "" {
				drawn.calls[e.Op]++
			}
		}
	}
	return drawn
}

func TestWithoutFaultsEveryJobIsCompleted(t *testing.T) {
	for n := range uint64(30) {
		spec := simulation.NewSpec(firstSeed + n)
		spec.Faults = false
		out := simulation.Run(t, spec)
		if out.Broken != nil {
			t.Fatal(out.Story())
		}
		if !strings.HasPrefix(out.End, "completed in epoch 1; ") {
			t.Errorf("seed %d ends so: %s; want the job completed", spec.Seed, out.End)
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
