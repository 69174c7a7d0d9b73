package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shrinkRuns bounds how many worlds a shrinking runs.
const shrinkRuns = 600

// Shrink looks for the shortest history that breaks the same promise in the same way: without the faults that it does
// not need, with everybody in the order of arrival as early as it still breaks, with fewer chunks, workers, stages and calls.
func Shrink(t *testing.T, out Outcome) Outcome {
	t.Helper()
	left := shrinkRuns
	try := func(spec Spec) bool {
		if left--; left < 0 {
			return false
		}
		again := Run(t, spec)
		if again.Broken == nil || again.Broken.Rule != out.Broken.Rule {
			return false
		}
		again.Spec, out = spec, again
		return true
	}
	fixed := out.Spec
	fixed.Fixed = slices.Clone(out.Fired)
	if fixed.Fixed == nil {
		fixed.Fixed = []Fault{}
	}
	if !try(fixed) {
		return out // it is not the faults alone: the seed replays it
	}
	for range 3 {
		before := len(out.Spec.Fixed)
		dropFaults(&out, try)
		calmDown(&out, try)
		smaller(t, &out, try)
		if len(out.Spec.Fixed) == before {
			break
		}
	}
	return out
}

// dropFaults leaves out faults, many at once first.
func dropFaults(out *Outcome, try func(Spec) bool) {
	for size := max(1, len(out.Spec.Fixed)/2); size >= 1; size /= 2 {
		for at := len(out.Spec.Fixed) - size; at >= 0; at -= size {
			spec := out.Spec
			spec.Fixed = slices.Delete(slices.Clone(spec.Fixed), at, min(at+size, len(spec.Fixed)))
			try(spec)
			at = min(at, len(out.Spec.Fixed))
		}
	}
}

// calmDown lets everybody go on in the order of arrival from as early an event as it can.
func calmDown(out *Outcome, try func(Spec) bool) {
	low, high := 0, len(out.History.Events)
	if out.Spec.Calm >= 0 {
		high = out.Spec.Calm
	}
	for range 10 {
		if low >= high {
			return
		}
		spec := out.Spec
		spec.Calm = (low + high) / 2
		if low == 0 && high == len(out.History.Events) {
			spec.Calm = 0
		}
		if try(spec) {
			high = spec.Calm
		} else {
			low = spec.Calm + 1
		}
	}
}

// smaller takes chunks, workers, stages and calls away, with the faults where they are or at calls like those.
func smaller(t *testing.T, out *Outcome, try func(Spec) bool) {
	t.Helper()
	for _, less := range []func(*Spec){
		func(s *Spec) { s.Chunks = 1 }, func(s *Spec) { s.Workers = 1 }, func(s *Spec) { s.Stages = 1 }, func(s *Spec) { s.Calls = 1 },
	} {
		spec := out.Spec
		less(&spec)
		if equal(spec, out.Spec) || try(spec) || len(spec.Fixed) > maxMoved {
			continue
		}
		for skip := range maxMoved {
			if moved, ok := move(t, spec, *out, skip); ok && try(moved) {
				break
			}
		}
	}
}

// maxMoved bounds how many faults are moved, and how often each.
const maxMoved = 4

// move puts the faults of a world into a smaller one, whose calls have other numbers: each to the call of the same name
// that is nearest to where it was, past as many as skip says. It is not possible where there are none.
func move(t *testing.T, spec Spec, out Outcome, skip int) (Spec, bool) {
	t.Helper()
	spec.Fixed = []Fault{}
	for _, f := range out.Spec.Fixed {
		if f.N >= 0 {
			like := out.History.name(f.N)
			spec.Survey = true
			there := Run(t, spec)
			spec.Survey = false
			calls := slices.DeleteFunc(slices.Compact(there.ForcedAt[f.Kind]), func(n int) bool { return there.History.name(n) != like })
			if len(calls) <= skip {
				return spec, false
			}
			at := f.N
			slices.SortStableFunc(calls, func(a, b int) int { return cmp.Compare(distance(a, at), distance(b, at)) })
			f.N = calls[skip]
		}
		spec.Fixed = append(spec.Fixed, f)
	}
	return spec, true
}

// name is that of the call at which a fault is to happen: a fault beside it is an event of its own, before it.
func (h History) name(event int) string {
	for _, e := range h.Events[min(event, len(h.Events)):] {
		if e.Who != "world" {
			return e.Op
		}
	}
	return ""
}

func distance(a, b int) int { return max(a-b, b-a) }

func equal(a, b Spec) bool { return a.Command() == b.Command() }

// Command is what replays the world.
func (s Spec) Command() string {
	var b strings.Builder
	fmt.Fprintf(&b, "go test ./pkg/simulation -run 'TestWorld$' -v -count 1 -seed %d", s.Seed)
	usual := NewSpec(s.Seed)
	for _, flag := range []struct {
		name        string
		value, want int
	}{
		{"chunks", s.Chunks, usual.Chunks},
		{"stages", s.Stages, usual.Stages},
		{"calls", s.Calls, usual.Calls},
		{"workers", s.Workers, usual.Workers},
		{"reapers", s.Reapers, usual.Reapers},
		{"calm", s.Calm, usual.Calm},
	} {
		if flag.value != flag.want {
			fmt.Fprintf(&b, " -%s %d", flag.name, flag.value)
		}
	}
	switch {
	case s.Fixed != nil && len(s.Fixed) == 0, s.Fixed == nil && !s.Faults:
		b.WriteString(" -faults none")
	case s.Fixed != nil:
		var parts []string
		for _, f := range s.Fixed {
			parts = append(parts, f.String())
		}
		fmt.Fprintf(&b, " -faults '%s'", strings.Join(parts, "; "))
	}
	return b.String()
}

// storyLines bounds how much of a history is told: its end matters most.
const storyLines = 250

// Story is a broken world for a person: the promise, the history without what changed nothing, and how to replay it.
func (o Outcome) Story() string {
	var lines []string
	for _, e := range o.History.Events {
		if e.told() {
			lines = append(lines, e.String())
		}
	}
	var b strings.Builder
	if left := len(lines) - storyLines; left > 0 {
		fmt.Fprintf(&b, "  (%d lines before)\n", left)
		lines = lines[left:]
	}
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	if o.Broken != nil {
		fmt.Fprintf(&b, "BROKEN %s\n", o.Broken)
	}
	fmt.Fprintf(&b, "replay: %s\n", o.Spec.Command())
	return b.String()
}

// told says that an event belongs into a story: reads that went well do not, nor do waits for a message.
func (e Event) told() bool {
	if e.Fault != "" || e.Err != "" || e.Row != nil || e.Who == "world" {
		return true
	}
	if e.Op == "Receive" {
		return e.Note != ""
	}
	return e.Write
}
