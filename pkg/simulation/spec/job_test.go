package spec

import (
	"strings"
	"testing"
)

func TestEveryHistoryOfAJobKeepsThePromises(t *testing.T) {
	for _, w := range SmallJobs() {
		t.Run(w.Name, func(t *testing.T) {
			r := Search(&Job{JobBounds: w.JobBounds}, limit)
			if !r.Held() {
				t.Fatal(r)
			}
			t.Log(r)
		})
	}
}

func TestWithoutARuleSomeHistoryOfAJobBreaksAPromise(t *testing.T) {
	for _, v := range BrokenJobs() {
		t.Run(v.Name, func(t *testing.T) {
			r := Search(&Job{JobBounds: v.JobBounds, Broken: v.Break}, limit)
			if !strings.HasPrefix(r.Broken, v.Promise) || v.Promise == "" {
				t.Fatalf("without %q: got %q, want a history that breaks %s\n%s", v.Says, r.Broken, v.Promise, r)
			}
			t.Logf("without: %s\n%s", v.Says, r)
			if whole := Search(&Job{JobBounds: v.JobBounds}, limit); !whole.Held() {
				t.Errorf("with the rule, in the same world: %s", whole)
			}
		})
	}
}
