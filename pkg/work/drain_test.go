package work_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestDrain(t *testing.T) {
	in(t, "claims are released as deferrals, ready at once, and rung; calls in flight finish first", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 5 * time.Second}
		w := b.start("worker", s)
		b.pass(7 * time.Second)
		began := b.clock.Mono()
		w.drained()
		b.near("drained after", b.clock.Mono()-began, 3*time.Second)
		if s.aborted != 0 || s.count() != 2 {
			b.Errorf("got %d tries, %d aborted, want 2 that finished", s.count(), s.aborted)
		}
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Attempts != 0 || row.Deferrals != 1 || row.ReadyAt > b.clock.Now() || row.Reason.Kind != pipeline.Shutdown {
			b.Errorf("got %d attempts, %d deferrals, ready %s, %s, want a shutdown that is ready now", row.Attempts, row.Deferrals, row.ReadyAt, row.Reason)
		}
		if visible, inFlight := b.depth(); visible != 1 || inFlight != 0 {
			b.Errorf("got %d visible and %d in flight, want the new bell alone", visible, inFlight)
		}
		b.start("next", handler(succeeds))
		b.untilStatus(time.Second, chunk0, pipeline.TaskDone)
	})
	in(t, "what is in flight longer than Grace is dropped", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 90 * time.Second}
		w := b.start("worker", s)
		b.pass(time.Second)
		began := b.clock.Mono()
		w.drained()
		b.near("drained after", b.clock.Mono()-began, w.cfg.Grace)
		if s.aborted != 1 {
			b.Errorf("got %d aborted, want the one in flight", s.aborted)
		}
		if row := b.status(chunk0, pipeline.TaskPending); row.Reason.Kind != pipeline.Shutdown {
			b.Errorf("got %s, want shutdown", row.Reason)
		}
	})
	in(t, "a second signal drops everything at once; it is a shutdown still", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 90 * time.Second}
		w := b.start("worker", s)
		b.pass(time.Second)
		began := b.clock.Mono()
		w.drain()
		w.stop()
		<-w.done
		b.near("dropped after", b.clock.Mono()-began, 0)
		if row := b.status(chunk0, pipeline.TaskPending); row.Reason.Kind != pipeline.Shutdown || row.Attempts != 0 {
			b.Errorf("got %s and %d attempts, want a shutdown that is not counted", row.Reason, row.Attempts)
		}
	})
	in(t, "dropped without a drain: it ends, and it is a shutdown too", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 90 * time.Second}
		w := b.start("worker", s)
		b.pass(time.Second)
		w.stop()
		<-w.done
		if row := b.status(chunk0, pipeline.TaskPending); row.Reason.Kind != pipeline.Shutdown || row.Attempts != 0 {
			b.Errorf("got %s and %d attempts, want a shutdown that is not counted", row.Reason, row.Attempts)
		}
	})
	in(t, "nothing is received any more", func(b *bench) {
		w := b.start("worker", handler(succeeds))
		b.pass(time.Second)
		w.drain()
		b.rung(0)
		b.pass(time.Minute)
		b.status(chunk0, pipeline.TaskPending)
		if visible, _ := b.depth(); visible != 1 {
			b.Errorf("got %d visible messages, want the bell to be left", visible)
		}
	})
	in(t, "an attempt that finishes within Grace is done", func(b *bench) {
		b.rung(0)
		w := b.start("worker", tries(1, 10*time.Second))
		b.pass(time.Second)
		w.drained()
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "an idle worker returns at once", func(b *bench) {
		w := b.start("worker", handler(succeeds))
		b.pass(time.Minute)
		began := b.clock.Mono()
		w.drained()
		b.near("drained after", b.clock.Mono()-began, 0)
	})
}

func TestSlots(t *testing.T) {
	in(t, "a worker holds no more claims than it has slots, and uses all of them", func(b *bench) {
		var running, most atomic.Int64
		for n := range 20 {
			b.rung(n)
		}
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			most.Store(max(most.Load(), running.Add(1)))
			_ = b.clock.Sleep(ctx, 3*time.Second)
			running.Add(-1)
			return succeeds(ctx, a)
		}))
		b.pass(time.Minute)
		if most.Load() != 4 {
			b.Errorf("got %d at once, want 4", most.Load())
		}
		for n := range 20 {
			b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}, pipeline.TaskDone)
		}
	})
	in(t, "a closed door: nothing is received until it opens", func(b *bench) {
		b.rung(0)
		open := make(chan struct{})
		b.start("worker", handler(succeeds), func(h *host) {
			h.cfg.Sources[1].Door = func(ctx context.Context) error {
				select {
				case <-open:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
		b.pass(time.Minute)
		b.status(chunk0, pipeline.TaskPending)
		if visible, _ := b.depth(); visible != 1 {
			b.Errorf("got %d visible messages, want 1", visible)
		}
		close(open)
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "a queue that fails for a while: nothing is lost", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(succeeds), around(pipelinetest.LoseWrites(5, "Receive")))
		b.pass(time.Minute)
		b.status(chunk0, pipeline.TaskDone)
	})
}

func TestJournal(t *testing.T) {
	in(t, "is kept in pages, every try of every attempt, and the sums agree", func(b *bench) {
		b.rung(0, lots)
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for n := range 700 {
				b.need(a.MaySend(ctx))
				try := pipeline.Try{Call: "call", Number: n, Cost: 3, Usage: pipeline.Usage{Input: 2, Output: 1}}
				if n%10 == 0 {
					try.Failure = pipeline.Fail(pipeline.Malformed, "%s", strings.Repeat("<\x00é", 400))
				}
				a.Record(try)
			}
			return succeeds(ctx, a)
		}))
		b.pass(time.Second)
		h, r := b.history(chunk0), b.last(chunk0)
		named := 0
		for n, page := range h.Journals {
			if size := len(pipeline.Encode(page)); page.Page != n || size > 120<<10 {
				b.Errorf("page %d is numbered %d and has %d bytes", n, page.Page, size)
			}
			named += len(page.Tries)
		}
		if len(h.Journals) < 2 {
			b.Errorf("got %d pages, want some", len(h.Journals))
		}
		if named != 700 || r.Tries != 700 || r.Cost != 2100 || r.Usage.Input != 1400 || r.Failures[pipeline.Malformed] != 70 || r.Charged != 700 {
			b.Errorf("got %d tries in the journal and the record %+v, want 700 of each", named, r)
		}
	})
	in(t, "names every try although the first copy of a page lands after the last", func(b *bench) {
		b.rung(0, lots)
		var late func(context.Context) error
		var mu sync.Mutex
		b.start("worker", tries(30, 700*time.Millisecond), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			mu.Lock()
			first := late == nil && op.Name == "PutItem" && strings.Contains(op.On, "#tries#")
			if first {
				late = do
			}
			mu.Unlock()
			if first {
				return pipelinetest.ErrLost
			}
			return do(ctx)
		}))
		b.pass(time.Minute)
		b.need(late(b.ctx))
		named := 0
		for _, page := range b.history(chunk0).Journals {
			named += len(page.Tries)
		}
		if r := b.last(chunk0); named != r.Tries || named < 30 {
			b.Errorf("got %d tries in the journal, the record has %d", named, r.Tries)
		}
	})
	in(t, "of a killed worker is missing at most what it did since its last renewal", func(b *bench) {
		b.rung(0, lots)
		s := &sender{every: 100 * time.Millisecond}
		w := b.start("worker", s)
		b.pass(12 * time.Second)
		w.kill()
		named := 0
		for _, page := range b.history(chunk0).Journals {
			named += len(page.Tries)
		}
		if named < s.count()-51 || named == 0 {
			b.Errorf("got %d of %d tries in the journal, want all but those of the last five seconds", named, s.count())
		}
	})
	in(t, "a page whose answer was lost is written once", func(b *bench) {
		b.rung(0, lots)
		s := &sender{every: 100 * time.Millisecond}
		b.start("worker", s, around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			err := do(ctx)
			if op.Name == "PutItem" && strings.Contains(op.On, "#tries#0000") {
				return pipelinetest.ErrLost
			}
			return err
		}))
		b.pass(21 * time.Second)
		b.job(pipeline.JobPaused)
		b.pass(20 * time.Second)
		if r := b.read(chunk0); r.Status != pipeline.TaskClaimed {
			b.Errorf("got %s, want claimed: its journal could not be written, so it is the reaper's to end", r.Status)
		}
	})
	in(t, "records of every outcome say worker, time, stage, reason and status", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.Accepted, r.Bodies = 1, []int64{0} })
		b.start("worker", fails(pipeline.Ambiguous))
		b.pass(time.Second)
		r := b.last(chunk0)
		if r.Worker != "worker" || r.Stage != 2 || r.Outcome != pipeline.FailedNow || r.Failure.Kind != pipeline.Ambiguous || r.Status != pipeline.TaskPending || r.ClaimedAt == 0 || r.EndedAt < r.ClaimedAt || r.Generation != 1 {
			b.Errorf("got the record %+v", r)
		}
	})
}

func TestAPanicInTheEngineEndsNoProcess(t *testing.T) {
	in(t, "the worker that polls goes on with its other work, and the claim lapses", func(b *bench) {
		b.rung(0)
		b.rung(1)
		first := atomic.Bool{}
		b.start("worker", handler(succeeds), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "End" && op.On == chunk0.String() && first.CompareAndSwap(false, true) {
				panic("a bug")
			}
			return do(ctx)
		}))
		b.untilStatus(time.Second, pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(1)}, pipeline.TaskDone)
		b.status(chunk0, pipeline.TaskClaimed)
		b.sweeping(b.policy.ClaimTTL + b.policy.MaxSkew + 2*time.Second)
		b.status(chunk0, pipeline.TaskDone) // its work was accepted
	})
	in(t, "one whose claim panicked while it was alone lets another be alone", func(b *bench) {
		lost := func(t *pipeline.Task) { t.Losses = 2 }
		b.rung(0, lost)
		claims := atomic.Int64{}
		b.start("worker", handler(succeeds), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Claim" && op.On == chunk0.String() && claims.Add(1) == 2 {
				panic("a bug")
			}
			return do(ctx)
		}))
		b.until(time.Minute, "the claim panicked", func() bool { return claims.Load() >= 2 })
		b.rung(1, lost)
		b.untilStatus(10*time.Second, pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(1)}, pipeline.TaskDone)
	})
}
