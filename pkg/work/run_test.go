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
	in(t, "of several attempts of one job the last to be over asks, for those that ended before it too", func(b *bench) {
		for n := range 3 {
			b.rung(n)
		}
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			n := a.Claim().ID.Number()
			b.need(b.clock.Sleep(ctx, time.Duration(n+1)*time.Second))
			if n == 2 {
				return pipeline.EndingOf(pipeline.Fail(pipeline.Ambiguous, "no"), 0)
			}
			return succeeds(ctx, a)
		}))
		b.pass(2500 * time.Millisecond)
		if b.asked() != 0 {
			b.Errorf("asked %d times while chunk 2 was worked on, want not yet: it is open", b.asked())
		}
		b.pass(time.Second)
		if b.asked() != 1 {
			b.Errorf("asked %d times once no attempt of the job is left, want once", b.asked())
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
