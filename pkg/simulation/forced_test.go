package simulation_test

import (
	"cmp"
	"slices"
	"testing"

	"holdfast/pkg/simulation"
)

// plain are the worlds whose every call gets every fault: one whose answers come quickly, one whose take long and which
// shares a limiter.
var plain = []uint64{3, 8}

// scene is a world in which something goes wrong already, so that the writes that only then are made get every fault too.
type scene struct {
	seed   uint64
	goes   []simulation.Kind // wrong, one after the other: each at the first call at which the writes come of it
	writes []string
	person bool // they are those of a person's command
}

var scenes = []scene{
	{seed: 8, goes: []simulation.Kind{simulation.KillAfter}, writes: []string{"Expire", "Ring"}},
	{seed: 8, goes: []simulation.Kind{simulation.CancelJob}, writes: []string{"Close"}},
	{seed: 8, goes: []simulation.Kind{simulation.KillAfter, simulation.PauseJob}, writes: []string{"Unpark"}},
	{seed: 3, goes: []simulation.Kind{simulation.DoubleMessage}, writes: []string{"Delay"}},
	{seed: 3, goes: []simulation.Kind{simulation.RefuseAnswer, simulation.RedriveJob}, writes: []string{"Redrive", "RaiseBudget"}, person: true},
	{seed: 3, goes: []simulation.Kind{simulation.ModelOutage}, writes: []string{"Strike", "CloseBreaker"}},
	{seed: 3, goes: []simulation.Kind{simulation.ThrottleModel}, writes: []string{"Penalise"}},
	{seed: unreadable, writes: []string{"Buried", "Bury"}},
}

// unreadable is a world whose document cannot be read: its split is given up.
const unreadable = 28

// survey runs a world with these faults and no others, and notes at which events each kind could happen.
func survey(t *testing.T, seed uint64, faults ...simulation.Fault) simulation.Outcome {
	t.Helper()
	spec := simulation.NewSpec(seed)
	spec.Fixed, spec.Survey = slices.Clone(faults), true
	if spec.Fixed == nil {
		spec.Fixed = []simulation.Fault{}
	}
	out := simulation.Run(t, spec)
	if out.Broken != nil {
		t.Fatal(out.Story())
	}
	return out
}

// play finds where each fault of the scene has to happen, and returns the world in which they do.
func (s scene) play(t *testing.T) simulation.Outcome {
	t.Helper()
	out := survey(t, s.seed)
	for n, kind := range s.goes {
		last := n == len(s.goes)-1
		out = s.next(t, out, kind, last)
	}
	if !s.made(out) {
		t.Fatalf("seed %d: %v never come of %v: choose another seed", s.seed, s.writes, s.goes)
	}
	return out
}

// next lets a fault happen at the first call of all at which the writes come of it, or at the first if others follow.
func (s scene) next(t *testing.T, out simulation.Outcome, kind simulation.Kind, last bool) simulation.Outcome {
	t.Helper()
	events := slices.Compact(out.ForcedAt[kind])
	for _, event := range events {
		again := survey(t, s.seed, append(slices.Clone(out.Fired), simulation.Fault{N: event, Kind: kind})...)
		if !last || s.made(again) {
			return again
		}
	}
	t.Fatalf("seed %d: %v never come of %v, at none of %d calls: choose another seed", s.seed, s.writes, s.goes, len(events))
	return out
}

// made says that every write of the scene is made.
func (s scene) made(out simulation.Outcome) bool {
	return !slices.ContainsFunc(s.writes, func(write string) bool {
		return !slices.ContainsFunc(out.History.Events, func(e simulation.Event) bool {
			return e.Write && e.Op == write && e.ByPerson() == s.person
		})
	})
}

// point is a world in which one more fault is forced: at this call, which is the nth of its name that gets it.
type point struct {
	spec simulation.Spec
	op   string
	kind simulation.Kind
	nth  int
}

// found are the points, once they were looked for.
var found []point

// points are a world for every kind of fault and every call at which it may happen, of the plain worlds and of the
// scenes' own writes. The first of each kind and name come first: a run that is cut off has tried each of those.
func points(t *testing.T) []point {
	t.Helper()
	if found == nil {
		found = look(t)
	}
	return found
}

func look(t *testing.T) (all []point) {
	t.Helper()
	times := map[simulation.Kind]simulation.Tally{}
	force := func(out simulation.Outcome, kind simulation.Kind, event int) {
		op := ""
		if event >= 0 {
			op = out.History.Events[event].Op
		}
		if times[kind] == nil {
			times[kind] = simulation.Tally{}
		}
		times[kind][op]++
		spec := out.Spec
		spec.Survey, spec.Fixed = false, append(slices.Clone(out.Fired), simulation.Fault{N: event, Kind: kind})
		all = append(all, point{spec, op, kind, times[kind][op]})
	}
	for _, seed := range plain {
		out := survey(t, seed)
		for _, kind := range simulation.Kinds() {
			for _, event := range slices.Compact(out.ForcedAt[kind]) {
				force(out, kind, event)
			}
		}
		for _, kind := range simulation.Born() {
			force(out, kind, -1)
		}
	}
	for _, s := range scenes {
		out := s.play(t)
		for _, kind := range simulation.Kinds() {
			for _, event := range slices.Compact(out.ForcedAt[kind]) {
				if slices.Contains(s.writes, out.History.Events[event].Op) {
					force(out, kind, event)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.nth, b.nth) })
	return all
}

// forced runs one in stride of the points, beginning with the one numbered from, until run says that it is enough, and
// returns how many those are.
func forced(t *testing.T, from, stride int, run func(simulation.Spec) bool) (of int) {
	t.Helper()
	goes := true
	for n, p := range points(t) {
		if n%stride != from%stride {
			continue
		}
		of++
		goes = goes && run(p.spec)
	}
	return of
}
