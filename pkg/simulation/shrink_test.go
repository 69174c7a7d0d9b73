//go:build !race

package simulation_test

import (
	"flag"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/simulation"
)

// broken is a world that breaks P10: nobody reaps, so a row whose message is lost is never rung again. What else goes
// wrong in it has nothing to do with that.
func broken(t *testing.T) simulation.Outcome {
	t.Helper()
	spec := simulation.NewSpec(3)
	spec.Reapers, spec.Fixed, spec.Survey = 0, []simulation.Fault{}, true
	at := simulation.Run(t, spec).ForcedAt
	spec.Survey = false
	for _, kind := range []simulation.Kind{simulation.LoseMessage, simulation.ClockStep, simulation.Freeze} {
		spec.Fixed = append(spec.Fixed, simulation.Fault{N: at[kind][0], Kind: kind})
	}
	out := simulation.Run(t, spec)
	if out.Broken == nil || len(out.Fired) < 2 {
		t.Fatalf("a lost message that nobody rings again broke nothing: %s, faults %v", out.End, out.Fired)
	}
	return out
}

func TestABrokenWorldIsToldShortAndItsCommandReplaysIt(t *testing.T) {
	found := broken(t)
	short := simulation.Shrink(t, found)
	if short.Broken == nil || short.Broken.Rule != found.Broken.Rule {
		t.Fatalf("what is left breaks %v, want %s", short.Broken, found.Broken)
	}
	spec := short.Spec
	if spec.Chunks != 1 || spec.Workers != 1 || len(spec.Fixed) != 1 || spec.Fixed[0].Kind != simulation.LoseMessage {
		t.Errorf("left are %d chunks, %d workers and the faults %v; want one of each, and the lost message", spec.Chunks, spec.Workers, spec.Fixed)
	}
	story := short.Story()
	for _, part := range []string{"message lost", "BROKEN " + short.Broken.Promise, "replay: " + spec.Command(), "-seed 3"} {
		if !strings.Contains(story, part) {
			t.Errorf("the story does not say %q:\n%s", part, story)
		}
	}
	again := simulation.Run(t, parse(t, spec.Command()))
	if again.Broken == nil || again.Broken.String() != short.Broken.String() {
		t.Errorf("the command replays %v, want %s", again.Broken, short.Broken)
	}
}

func TestACommandSaysAllThatItsWorldIsMadeFrom(t *testing.T) {
	usual := simulation.NewSpec(7)
	for _, edit := range []func(*simulation.Spec){
		func(*simulation.Spec) {},
		func(s *simulation.Spec) {
			s.Chunks, s.Stages, s.Calls, s.Workers, s.Reapers, s.Calm = 1, 3, 4, 2, 2, 17
		},
		func(s *simulation.Spec) { s.Fixed = []simulation.Fault{} },
		func(s *simulation.Spec) {
			for n, kind := range simulation.Kinds() {
				s.Fixed = append(s.Fixed, simulation.Fault{N: n - 1, Kind: kind})
			}
		},
	} {
		want := usual
		edit(&want)
		if got := parse(t, want.Command()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis of %+v, want %+v", want.Command(), got, want)
		}
	}
}

func TestFaultsThatNobodyPrintedAreRefused(t *testing.T) {
	for _, text := range []string{"12", "killed before the write", "x:message lost", "12:message found"} {
		if got, err := simulation.ParseFaults(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// parse reads the world that a printed command asks for.
func parse(t *testing.T, command string) simulation.Spec {
	t.Helper()
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	world := askedBy(set)
	before, faults, _ := strings.Cut(command, " -faults ")
	words := strings.Fields(before)
	words = words[slices.Index(words, "-seed"):]
	if faults != "" {
		words = append(words, "-faults", strings.Trim(faults, "'"))
	}
	if err := set.Parse(words); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	spec, err := world.world()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return spec
}
