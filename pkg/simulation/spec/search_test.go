//go:build !race

package spec

import (
	"strings"
	"testing"
)

// limit of states of one search: more than any world here has, and some 400 MB.
const limit = 1_500_000

// held are the worlds that were searched whole with nothing broken, so that none is searched twice.
var held = map[any]bool{}

func mustHold[S comparable](t *testing.T, world any, m Model[S]) {
	t.Helper()
	if held[world] {
		return
	}
	r := Search(m, limit)
	if !r.Held() {
		t.Fatal(r)
	}
	held[world] = true
	t.Log(r)
}

func mustBreak[S comparable](t *testing.T, rule, promise string, m Model[S]) {
	t.Helper()
	r := Search(m, limit)
	if promise == "" || !strings.HasPrefix(r.Broken, promise) || len(r.Trace) < 3 {
		t.Fatalf("without the rule that %s: got %q, want a history that breaks %s\n%s", rule, r.Broken, promise, r)
	}
	t.Logf("without the rule that %s: %s", rule, r)
}

func TestEveryHistoryOfATaskKeepsThePromises(t *testing.T) {
	for _, w := range Small() {
		t.Run(w.Name, func(t *testing.T) { mustHold(t, w.Bounds, &Task{Bounds: w.Bounds}) })
	}
}

func TestEveryHistoryOfAJobKeepsThePromises(t *testing.T) {
	for _, w := range SmallJobs() {
		t.Run(w.Name, func(t *testing.T) { mustHold(t, w.JobBounds, &Job{JobBounds: w.JobBounds}) })
	}
}

// Each in the world in which nothing breaks with the rule.
func TestWithoutARuleSomeHistoryOfATaskBreaksAPromise(t *testing.T) {
	for _, v := range Broken() {
		t.Run(v.Name, func(t *testing.T) {
			mustBreak(t, v.Says, v.Promise, &Task{Bounds: v.Bounds, Broken: v.Break})
			mustHold(t, v.Bounds, &Task{Bounds: v.Bounds})
		})
	}
}

func TestWithoutARuleSomeHistoryOfAJobBreaksAPromise(t *testing.T) {
	for _, v := range BrokenJobs() {
		t.Run(v.Name, func(t *testing.T) {
			mustBreak(t, v.Says, v.Promise, &Job{JobBounds: v.JobBounds, Broken: v.Break})
			mustHold(t, v.JobBounds, &Job{JobBounds: v.JobBounds})
		})
	}
}

func TestASearchThatIsCutOffHoldsNothing(t *testing.T) {
	if r := Search(&Task{Bounds: small(1, nil)}, 100); r.Held() || r.Complete {
		t.Errorf("of a world cut off after 100 states: %s", r)
	}
}
