package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestGivingUp(t *testing.T) {
	in(t, "a failure on every attempt: MaxAttempts attempts, waits that double, a reason for each, then a dead letter", func(b *bench) {
		b.rung(0)
		var at []pipeline.Instant
		b.start("worker", handler(func(context.Context, pipeline.Attempt) pipeline.Ending {
			at = append(at, b.clock.Now())
			return pipeline.EndingOf(pipeline.Fail(pipeline.Ambiguous, "time %d", len(at)), 0)
		}))
		b.sweeping(20 * time.Minute)
		if len(at) != b.policy.MaxAttempts {
			b.Fatalf("got %d attempts, want %d", len(at), b.policy.MaxAttempts)
		}
		b.near("second after", at[1].Sub(at[0]), 30*time.Second)
		b.near("third after", at[2].Sub(at[1]), time.Minute)
		row := b.status(chunk0, pipeline.TaskAbandoned)
		records := row.Counting(b.history(chunk0).Records)
		for n, r := range records {
			if r.Failure.Cause != fmt.Sprintf("time %d", n+1) || r.Attempt != n+1 || r.Worker != "worker" || !r.Counted {
				b.Errorf("got record %+v, want attempt %d with its own reason", r, n+1)
			}
			if n > 0 && r.Previous != records[n-1].Ender {
				b.Errorf("record %d names %q before it, want %q", n+1, r.Previous, records[n-1].Ender)
			}
		}
		if len(records) != 3 || !row.Buried {
			b.Errorf("got %d records, buried %v, want 3 and buried", len(records), row.Buried)
		}
		b.empty("given up")
		if len(b.letters(b.queues.Work)) != 1 {
			b.Errorf("got %d dead letters, want one", len(b.letters(b.queues.Work)))
		}
	})
	in(t, "the dead letter could not be sent: the row stays listed until it is", func(b *bench) {
		b.rung(0)
		w := b.host("worker", fails(pipeline.Invalid), around(nil))
		w.cfg.Reaper = failingBury{fakeReaper{b, b.store}}
		w.run()
		b.pass(time.Second)
		if row := b.status(chunk0, pipeline.TaskAbandoned); row.Buried || !row.Listed() {
			b.Error("the row left the index without a dead letter")
		}
		b.sweeping(10 * time.Second)
		if !b.read(chunk0).Buried {
			b.Error("the reaper did not send the dead letter")
		}
	})
	in(t, "a poison that always takes its worker along: exactly MaxAttempts claims, then quiet", func(b *bench) {
		b.rung(0)
		claims := 0
		for range 10 {
			var w *host
			w = b.host(fmt.Sprintf("worker-%d", claims), handler(func(context.Context, pipeline.Attempt) pipeline.Ending {
				claims++
				w.mu.Lock()
				w.dead = true
				w.mu.Unlock()
				return pipeline.Ending{}
			}))
			w.run()
			b.sweeping(5 * time.Minute)
			w.kill()
		}
		if claims != b.policy.MaxAttempts {
			b.Errorf("got %d claims, want %d", claims, b.policy.MaxAttempts)
		}
		row := b.status(chunk0, pipeline.TaskAbandoned)
		if row.Reason.Kind != pipeline.Lost {
			b.Errorf("got the reason %s, want lost", row.Reason)
		}
		b.sweeping(10 * time.Minute)
		b.empty("poison")
	})
	in(t, "deferrals use up no attempt, wait longer each time, and end at MaxDeferrals", func(b *bench) {
		b.policy.MaxDeferrals = 5
		b.rung(0)
		n := 0
		b.start("worker", handler(func(context.Context, pipeline.Attempt) pipeline.Ending {
			n++
			return pipeline.EndingOf(pipeline.Fail(pipeline.Throttled, "slow down"), 0)
		}))
		b.sweeping(3 * time.Hour)
		if want := b.policy.MaxDeferrals + b.policy.MaxAttempts; n != want {
			b.Errorf("got %d attempts, want %d: the deferrals, then those that count", n, want)
		}
		if row := b.status(chunk0, pipeline.TaskAbandoned); row.Deferrals != 5 {
			b.Errorf("got %d deferrals, want 5", row.Deferrals)
		}
	})
	in(t, "what the provider asked to wait is waited, and not counted", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(func(context.Context, pipeline.Attempt) pipeline.Ending {
			return pipeline.EndingOf(pipeline.Fail(pipeline.Throttled, "slow down"), 15*time.Minute)
		}))
		began := b.clock.Now()
		b.pass(time.Second)
		row := b.status(chunk0, pipeline.TaskPending)
		b.near("ready after", row.ReadyAt.Sub(began), 15*time.Minute)
		if row.Attempts != 0 {
			b.Errorf("got %d attempts, want none counted", row.Attempts)
		}
	})
	in(t, "attempts count since the last accepted stage", func(b *bench) {
		b.rung(0)
		n := 0
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			n++
			if n%2 == 0 {
				b.need(a.Checkpoint(ctx, a.Claim().Accepted+1, []byte("{}")))
			}
			if a.Claim().Accepted == 3 {
				return pipeline.Ending{Outcome: pipeline.Succeeded}
			}
			return pipeline.EndingOf(pipeline.Fail(pipeline.Ambiguous, "no"), 0)
		}))
		b.sweeping(time.Hour)
		b.status(chunk0, pipeline.TaskDone)
		if n != 6 {
			b.Errorf("got %d attempts, want 6", n)
		}
	})
	in(t, "a store that fails for ten seconds when an attempt ends: it ends all the same, nothing is lost", func(b *bench) {
		b.rung(0)
		began := b.clock.Mono()
		var down atomic.Bool
		b.start("worker", handler(func(context.Context, pipeline.Attempt) pipeline.Ending {
			began = b.clock.Mono()
			down.Store(true)
			return pipeline.EndingOf(pipeline.Fail(pipeline.Throttled, "slow down"), 0)
		}), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if down.Load() && b.clock.Mono()-began < 10*time.Second {
				return pipelinetest.ErrLost
			}
			return do(ctx)
		}))
		b.sweeping(25 * time.Second)
		if row := b.status(chunk0, pipeline.TaskPending); row.Losses != 0 || row.Deferrals != 1 || row.Attempts != 0 {
			b.Errorf("got %d losses, %d deferrals, %d attempts, want the one deferral", row.Losses, row.Deferrals, row.Attempts)
		}
	})
	in(t, "the last attempt knows that it is", func(b *bench) {
		b.rung(0)
		var last []bool
		b.start("worker", handler(func(_ context.Context, a pipeline.Attempt) pipeline.Ending {
			last = append(last, a.Last())
			return pipeline.EndingOf(pipeline.Fail(pipeline.Ambiguous, "no"), 0)
		}))
		b.sweeping(20 * time.Minute)
		if !slices.Equal(last, []bool{false, false, true}) {
			b.Errorf("got %v, want only the third to be the last", last)
		}
	})
	in(t, "finished work is done, whatever the handler says", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			succeeds(ctx, a)
			panic("after the last stage")
		}))
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "each end of a task asks whether its job is over; an attempt that goes on does not", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			if a.Claim().Attempts == 1 {
				return pipeline.EndingOf(pipeline.Fail(pipeline.Ambiguous, "no"), 0)
			}
			return succeeds(ctx, a)
		}))
		b.pass(time.Second)
		if b.asked() != 0 {
			b.Error("asked after an attempt that goes on")
		}
		b.pass(time.Minute)
		b.status(chunk0, pipeline.TaskDone)
		if b.asked() != 1 {
			b.Errorf("asked %d times, want once", b.asked())
		}
	})
}

type failingBury struct{ fakeReaper }

func (failingBury) Bury(context.Context, pipeline.Task) error { return pipelinetest.ErrLost }

func TestAttemptTime(t *testing.T) {
	endless := func(answers bool) handler {
		return func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			clock := pipeline.NewRealClock()
			for {
				if err := a.MaySend(ctx); err != nil {
					return stopped(a, err)
				}
				_ = clock.Sleep(ctx, time.Second)
				a.Record(pipeline.Try{Call: "call"})
				if answers {
					a.Answered()
				}
			}
		}
	}
	in(t, "over with new answers: ready at once, and nothing used up", func(b *bench) {
		b.rung(0, lots)
		w := b.start("worker", endless(true))
		b.pass(b.policy.AttemptTimeout + 2*time.Second)
		ends := w.ends()
		if len(ends) != 1 || ends[0].Outcome != pipeline.Overran || ends[0].Status != pipeline.TaskPending {
			b.Fatalf("got the ends %+v, want one that timed out", ends)
		}
		row := b.read(chunk0)
		if row.Attempts != 0 || row.ReadyAt > b.clock.Now() || row.DueAt > b.clock.Now() {
			b.Errorf("got %d attempts, ready %s, due %s, want 0 and now", row.Attempts, row.ReadyAt, row.DueAt)
		}
		b.empty("timed out with answers")
	})
	in(t, "over without new answers: counted", func(b *bench) {
		b.rung(0, lots)
		b.start("worker", endless(false))
		b.pass(b.policy.AttemptTimeout + 2*time.Second)
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Attempts != 1 || row.Reason.Kind != pipeline.TimedOut {
			b.Errorf("got %d attempts, %s, want 1 that timed out", row.Attempts, row.Reason)
		}
	})
	in(t, "without progress: it stops renewing, the reaper takes the claim, and it says so", func(b *bench) {
		b.rung(0)
		h := handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			<-a.Stopped()
			if a.Claim().Generation == 1 && !errors.Is(a.Stop(), pipeline.ErrStalled) {
				b.Errorf("got %v, want ErrStalled", a.Stop())
			}
			<-ctx.Done() // what is in flight hangs
			return stopped(a, a.Stop())
		})
		b.start("worker", h)
		b.sweeping(b.policy.StallTimeout + b.policy.ClaimTTL + b.policy.MaxSkew + 5*time.Second)
		row := b.read(chunk0)
		if row.Generation == 1 && row.Status == pipeline.TaskClaimed {
			b.Errorf("the claim still lasts: until %s, now %s", row.ExpiresAt, b.clock.Now())
		}
		if row.Losses != 1 {
			b.Errorf("got %d losses, want 1", row.Losses)
		}
	})
	in(t, "progress without answers keeps the claim", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for range 5 {
				_ = b.clock.Sleep(ctx, 40*time.Second)
				a.Progress()
			}
			return succeeds(ctx, a)
		}))
		b.sweeping(210 * time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Generation != 1 {
			b.Errorf("got generation %d, want 1", row.Generation)
		}
	})
	in(t, "a wait of tier one and then a slow call are no stall", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			_ = b.clock.Sleep(ctx, b.policy.RetryWait)
			b.need(a.MaySend(ctx))
			_ = b.clock.Sleep(ctx, b.policy.CallTimeout-time.Second)
			a.Record(pipeline.Try{Call: "call"})
			b.need(a.MaySend(ctx))
			return succeeds(ctx, a)
		}))
		b.sweeping(140 * time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Generation != 1 {
			b.Errorf("got generation %d, want 1", row.Generation)
		}
	})
	in(t, "a handler that ignores that its work was dropped: reported, and its claim runs out", func(b *bench) {
		b.policy.AttemptTimeout = 4 * time.Minute
		b.rung(0)
		release := make(chan struct{})
		var stuck []pipeline.Ref
		b.start("worker", handler(func(context.Context, pipeline.Attempt) pipeline.Ending {
			<-release
			return pipeline.Ending{Outcome: pipeline.FailedNow, Failure: pipeline.Fail(pipeline.Broken, "late")}
		}), func(h *host) { h.cfg.Stuck = func(ref pipeline.Ref) { stuck = append(stuck, ref) } })
		b.sweeping(6 * time.Minute)
		if len(stuck) == 0 || stuck[0] != chunk0 {
			b.Errorf("got %v reported as stuck, want %v", stuck, chunk0)
		}
		if row := b.read(chunk0); row.Losses == 0 {
			b.Error("its claim did not run out")
		}
		close(release)
	})
}

func explode(notes map[string]int) { notes["no map"]++ }

func TestPanic(t *testing.T) {
	in(t, "is a failed attempt that names the place, and the worker goes on", func(b *bench) {
		b.rung(0)
		b.rung(1)
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			if a.Claim().ID == chunk0.ID {
				explode(nil)
			}
			return succeeds(ctx, a)
		}))
		b.pass(time.Second)
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Attempts != 1 || row.Reason.Kind != pipeline.Broken {
			b.Errorf("got %d attempts, %s, want one that is broken", row.Attempts, row.Reason)
		}
		f := b.last(chunk0).Failure
		if !strings.Contains(f.Cause, "nil map") || !strings.Contains(f.Detail, "explode") || !strings.Contains(f.Detail, "run_test.go:") {
			b.Errorf("got cause %q and detail %q, want the panic and its place", f.Cause, f.Detail)
		}
		b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(1)}, pipeline.TaskDone)
	})
}

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
		began = b.clock.Mono()
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
					try.Failure = pipeline.Fail(pipeline.Malformed, "%s", strings.Repeat("é", 400))
				}
				a.Record(try)
			}
			return succeeds(ctx, a)
		}))
		b.pass(time.Second)
		h, r := b.history(chunk0), b.last(chunk0)
		named := 0
		for n, page := range h.Journals {
			if page.Page != n || len(page.Tries) > 250 {
				b.Errorf("page %d is numbered %d and has %d tries", n, page.Page, len(page.Tries))
			}
			named += len(page.Tries)
		}
		if named != 700 || r.Tries != 700 || r.Cost != 2100 || r.Usage.Input != 1400 || r.Failures[pipeline.Malformed] != 70 || r.Charged != 700 {
			b.Errorf("got %d tries in the journal and the record %+v, want 700 of each", named, r)
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
