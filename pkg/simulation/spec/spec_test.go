package spec

import (
	"strings"
	"testing"
)

// limit of states of one search: enough for every world here, and some 400 MB.
const limit = 1_500_000

func TestEveryHistoryOfATaskKeepsThePromises(t *testing.T) {
	for _, w := range Small() {
		t.Run(w.Name, func(t *testing.T) {
			r := Search(&Task{Bounds: w.Bounds}, limit)
			if !r.Held() {
				t.Fatal(r)
			}
			t.Log(r)
		})
	}
}

func TestWithoutARuleSomeHistoryBreaksAPromise(t *testing.T) {
	for _, v := range Broken() {
		t.Run(v.Name, func(t *testing.T) {
			r := Search(&Task{Bounds: v.Bounds, Broken: v.Break}, limit)
			if !strings.HasPrefix(r.Broken, v.Promise) || v.Promise == "" {
				t.Fatalf("without %q: got %q, want a history that breaks %s\n%s", v.Says, r.Broken, v.Promise, r)
			}
			if len(r.Trace) < 3 {
				t.Errorf("its history has %d lines: %v", len(r.Trace), r.Trace)
			}
			t.Logf("without: %s\n%s", v.Says, r)
			if whole := Search(&Task{Bounds: v.Bounds}, limit); !whole.Held() {
				t.Errorf("with the rule, in the same world: %s", whole)
			}
		})
	}
}
