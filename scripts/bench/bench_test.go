package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

// inVirtualTime runs a contender where only waiting takes time, each write so long, and nothing that is computed.
func inVirtualTime(t *testing.T, c child, write time.Duration) (r report) {
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
			r, err = c.over(ctx, slowed(wiring.InMemory(pipeline.DefaultPolicy(), pipeline.NewRealClock()), write))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// slowed lets each write of the store take a while, all at once: a commit is shared.
func slowed(b *wiring.Backend, write time.Duration) *wiring.Backend {
	b.Store = pipelinetest.Wrap(b.Store, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
		if op.Write && write > 0 {
			time.Sleep(write)
		}
		return do(ctx)
	})
	return b
}

// Who comes first of those that wake together is not fixed, and the last chunk of a run decides about some percent: the
// median of several runs is judged.
func TestTheEngineMakesNobodyWait(t *testing.T) {
	for name, c := range map[string]struct {
		fail   float64
		spread bool          // calls take 50 to 150 % of the latency: answers come one by one
		write  time.Duration // that each write takes
		most   float64       // makespan over that of the bare calls
	}{
		"no failures":                      {most: 1.05},
		"5 % of the tries fail":            {fail: 0.05, most: 1.05},
		"a store that takes 2 ms":          {write: 2 * time.Millisecond, spread: true, most: 1.10},
		"answers that come all at once":    {write: 2 * time.Millisecond, most: 1.10},
		"a slow store and tries that fail": {write: 2 * time.Millisecond, spread: true, fail: 0.05, most: 1.05},
	} {
		t.Run(name, func(t *testing.T) {
			l := full
			l.Fail, l.Spread = c.fail, c.spread
			bare := inVirtualTime(t, child{Contender: "null", Load: l}, 0).Makespan
			var runs []time.Duration
			for range 5 {
				runs = append(runs, inVirtualTime(t, child{Contender: "holdfast", Load: l}, c.write).Makespan)
			}
			slices.Sort(runs)
			ours := runs[len(runs)/2]
			ratio := float64(ours) / float64(bare)
			t.Logf("%v, the bare calls take %v: %.3f", runs, bare.Round(time.Millisecond), ratio)
			if ratio > c.most {
				t.Errorf("the work takes %.3f of the time of its bare calls, want at most %.2f", ratio, c.most)
			}
		})
	}
}
