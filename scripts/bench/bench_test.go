package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// inVirtualTime runs a contender where only waiting takes time, and nothing that is computed or written.
func inVirtualTime(t *testing.T, c child) (r report) {
	t.Helper()
	var err error
	if c.Document, err = document(c.Load.Chunks, "A"); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if c.Contender == "null" {
			r, err = runNull(ctx, c)
		} else {
			r, err = c.over(ctx, wiring.InMemory(pipeline.DefaultPolicy(), pipeline.NewRealClock()))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return r
}

func TestTheEngineMakesNobodyWait(t *testing.T) {
	for name, c := range map[string]struct {
		fail float64
		most float64 // makespan over that of the bare calls
	}{
		"no failures":           {0, 1.08},
		"5 % of the tries fail": {0.05, 1.05},
	} {
		t.Run(name, func(t *testing.T) {
			l := full
			l.Fail = c.fail
			bare := inVirtualTime(t, child{Contender: "null", Load: l}).Makespan
			ours := inVirtualTime(t, child{Contender: "holdfast", Load: l}).Makespan
			ratio := float64(ours) / float64(bare)
			t.Logf("%v, the bare calls take %v: %.3f", ours.Round(time.Millisecond), bare.Round(time.Millisecond), ratio)
			if ratio > c.most {
				t.Errorf("the work takes %.3f of the time of its bare calls, want at most %.2f", ratio, c.most)
			}
		})
	}
}
