package wiring_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

// at freezes a process at its kth port call: before it is made, or after it was made and before its answer comes.
func at(p *process, k int64, after bool, n *atomic.Int64) pipelinetest.Around {
	return func(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error {
		if n.Add(1) != k {
			return do(ctx)
		}
		if !after {
			p.freeze()
			if err := p.wait(); err != nil {
				return err
			}
			return do(ctx)
		}
		err := do(ctx)
		p.freeze()
		return err
	}
}

// calls is how many port calls an undisturbed run has.
func calls(t *testing.T) (n int64) {
	in(t, func(w *world) {
		var count atomic.Int64
		w.start("first", at(nil, -1, false, &count))
		job := w.submit(text(chunks))
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		n = count.Load()
	})
	return n
}

// TestKill lets the only worker die at each of its port calls, before the call and after it, and another take over.
func TestKill(t *testing.T) {
	n := calls(t)
	t.Logf("%d port calls, one in %d taken, before and after", n, stride)
	for _, after := range []bool{false, true} {
		for k := int64(1); k <= n; k += stride {
			name := fmt.Sprintf("call %d, after %v", k, after)
			in(t, func(w *world) {
				var count atomic.Int64
				w.startWith("first", func(p *process) pipelinetest.Around { return at(p, k, after, &count) })
				job := w.submit(text(chunks))
				time.Sleep(10 * time.Second)
				w.start("second", nil)
				w.ends(job.ID, 10*time.Minute, pipeline.JobCompleted)
				w.complete(job.ID, chunks)
				asked, keys, stored := w.model.count()
				if stored > 0 {
					t.Errorf("%s: %d stored answers were asked for again", name, stored)
				}
				if asked > keys+5 { // an answer that is being stored may give its slot away
					t.Errorf("%s: asked %d times for %d keys, want at most the 4 in flight and one being stored again", name, asked, keys)
				}
			})
			if t.Failed() {
				t.Fatalf("at %s", name)
			}
		}
	}
}

// TestZombie freezes the worker at each of its port calls for a minute, while another takes over, and lets it go on.
func TestZombie(t *testing.T) {
	n := calls(t)
	for k := int64(1); k <= n; k += stride {
		in(t, func(w *world) {
			var count atomic.Int64
			p := w.startWith("first", func(p *process) pipelinetest.Around { return at(p, k, k%2 == 0, &count) })
			job := w.submit(text(chunks))
			w.start("second", nil, func(c *wiring.Config) { c.Claims, c.InFlight = 1, 1 })
			time.Sleep(time.Duration(5+k%60) * time.Second)
			p.thaw()
			w.ends(job.ID, 10*time.Minute, pipeline.JobCompleted)
			time.Sleep(10 * time.Minute) // what the zombie still does changes nothing
			w.complete(job.ID, chunks)
			asked, keys, _ := w.model.count()
			if asked > keys+8 {
				t.Errorf("call %d: asked %d times for %d keys", k, asked, keys)
			}
		})
		if t.Failed() {
			t.Fatalf("at call %d", k)
		}
	}
}

// TestLostAnswers loses the answer of each port call in turn, and the call itself.
func TestLostAnswers(t *testing.T) {
	n := calls(t)
	for k := int64(1); k <= n; k += stride {
		for _, landed := range []bool{true, false} {
			in(t, func(w *world) {
				var count atomic.Int64
				w.start("first", func(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error {
					if count.Add(1) != k {
						return do(ctx)
					}
					if landed {
						_ = do(ctx)
					}
					return pipelinetest.ErrLost
				})
				job := w.submit(text(chunks))
				w.ends(job.ID, 20*time.Minute, pipeline.JobCompleted)
				w.complete(job.ID, chunks)
				if asked, keys, stored := w.model.count(); stored > 0 || asked > keys+1 {
					t.Errorf("asked %d times for %d keys, %d of them stored", asked, keys, stored)
				}
				for _, row := range w.rows(job.ID) {
					if row.Attempts > 1 || row.Losses > 0 {
						t.Errorf("%s: %d attempts, %d losses: a lost answer was counted", row.ID, row.Attempts, row.Losses)
					}
				}
			})
			if t.Failed() {
				t.Fatalf("at call %d, landed %v", k, landed)
			}
		}
	}
}
