package work_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// delivered lets a worker take what is in the queue and tells what is left of it a second later.
func (b *bench) delivered(h pipeline.Handler, edits ...func(*host)) (w *host, visible, inFlight int) {
	w = b.start("worker", h, edits...)
	b.pass(time.Second)
	visible, inFlight = b.depth()
	return w, visible, inFlight
}

// back is how long until the message is delivered again.
func (b *bench) back(w *host) time.Duration {
	b.Helper()
	w.kill()
	began := b.clock.Mono()
	deliveries, err := b.queues.Work.Receive(b.ctx, 1, 12*time.Hour)
	b.must(err)
	if len(deliveries) != 1 {
		b.Fatal("the message did not come back")
	}
	return b.clock.Mono() - began
}

// near checks a time to the second.
func (b *bench) near(what string, got, want time.Duration) {
	b.Helper()
	if (got - want).Abs() > time.Second+time.Millisecond {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestDeliver(t *testing.T) {
	in(t, "claimed by us, ends done: deleted", func(b *bench) {
		b.rung(0)
		b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskDone)
		b.empty("done")
	})
	in(t, "claimed by us, ends abandoned: deleted, with a dead letter", func(b *bench) {
		b.rung(0)
		b.delivered(fails(pipeline.Invalid))
		if row := b.status(chunk0, pipeline.TaskAbandoned); !row.Buried {
			b.Error("the row is not marked as buried")
		}
		b.empty("abandoned")
		if letters := b.letters(b.queues.Work); len(letters) != 1 || letters[0].Reason.Kind != pipeline.Invalid {
			b.Errorf("got dead letters %v, want one that says invalid", letters)
		}
	})
	in(t, "claimed by us, ends cancelled: deleted", func(b *bench) {
		b.rung(0)
		b.job(pipeline.JobCancelling)
		b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskCancelled)
		b.empty("cancelled")
	})
	in(t, "claimed by us, ends parked: deleted, nothing counted", func(b *bench) {
		b.rung(0)
		b.job(pipeline.JobPaused)
		b.delivered(handler(succeeds))
		if row := b.status(chunk0, pipeline.TaskParked); row.Attempts != 0 || row.Deferrals != 0 {
			b.Errorf("got %d attempts and %d deferrals, want none: a pause is counted for nothing", row.Attempts, row.Deferrals)
		}
		b.empty("parked")
	})
	in(t, "claimed by us, ends pending after a failure: left, and visible again at ready_at", func(b *bench) {
		b.rung(0)
		w, _, inFlight := b.delivered(fails(pipeline.Ambiguous))
		if row := b.status(chunk0, pipeline.TaskPending); row.Attempts != 1 {
			b.Errorf("got %d attempts, want 1", row.Attempts)
		}
		if inFlight != 1 {
			b.Fatalf("got %d messages in flight, want the one", inFlight)
		}
		b.near("back after", b.back(w), b.policy.AttemptBackoff-time.Second)
	})
	in(t, "claimed by us, ends in a deferral: deleted, due at ready_at", func(b *bench) {
		b.rung(0)
		b.delivered(fails(pipeline.Throttled))
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Attempts != 0 || row.Deferrals != 1 || row.DueAt != row.ReadyAt {
			b.Errorf("got %d attempts, %d deferrals, due %s and ready %s, want 0, 1 and the same time", row.Attempts, row.Deferrals, row.DueAt, row.ReadyAt)
		}
		b.empty("deferred")
	})
	in(t, "held by another: visible again when that attempt must be over", func(b *bench) {
		row := b.rung(0)
		_, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(row, "other", b.clock.Now()))
		b.must(err)
		w, _, inFlight := b.delivered(handler(succeeds))
		if inFlight != 1 {
			b.Fatalf("got %d messages in flight, want the one", inFlight)
		}
		b.near("back after", b.back(w), b.policy.AttemptTimeout-time.Second)
	})
	in(t, "held by another for long: visible again after ten seconds", func(b *bench) {
		row := b.row(0)
		_, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(row, "other", b.clock.Now()))
		b.must(err)
		b.pass(10 * time.Second)
		held := b.read(chunk0)
		_, err = b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: held}.Fence(), Expires: b.clock.Now().Add(2 * time.Hour)})
		b.must(err)
		b.pass(time.Hour)
		b.must(b.queues.Ring(b.ctx, held))
		w, _, _ := b.delivered(handler(succeeds))
		b.near("back after", b.back(w), 9*time.Second)
	})
	in(t, "held by a worker whose claim lapsed: expired, then claimed", func(b *bench) {
		row := b.rung(0)
		_, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(row, "dead", b.clock.Now()))
		b.must(err)
		b.pass(b.policy.ClaimTTL + b.policy.MaxSkew + time.Millisecond)
		b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "held by a worker whose claim may still last on another clock: left alone", func(b *bench) {
		row := b.rung(0)
		_, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(row, "slow", b.clock.Now()))
		b.must(err)
		b.pass(b.policy.ClaimTTL + b.policy.MaxSkew - time.Second)
		b.delivered(handler(succeeds))
		if row := b.status(chunk0, pipeline.TaskClaimed); row.ClaimedBy != "slow" {
			b.Errorf("got claimed by %s, want slow", row.ClaimedBy)
		}
	})
	in(t, "its ring is newer and it cannot be claimed: deleted", func(b *bench) {
		row := b.rung(0)
		rung, err := b.store.Ring(b.ctx, pipeline.RingWrite{Seen: row, Due: row.DueAt, Count: 1})
		b.must(err)
		_, err = b.store.Claim(b.ctx, pipelinetest.ClaimOf(rung, "other", b.clock.Now()))
		b.must(err)
		b.delivered(handler(succeeds))
		b.empty("stale ring")
	})
	in(t, "its ring is newer but it can be claimed: claimed", func(b *bench) {
		row := b.rung(0)
		_, err := b.store.Ring(b.ctx, pipeline.RingWrite{Seen: row, Due: row.DueAt, Count: 1})
		b.must(err)
		b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "early: visible again at ready_at", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.ReadyAt = r.ReadyAt.Add(5 * time.Minute) })
		w, _, _ := b.delivered(handler(succeeds))
		b.near("back after", b.back(w), 5*time.Minute-time.Second)
	})
	in(t, "very early: visible again after 15 minutes", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.ReadyAt = r.ReadyAt.Add(5 * time.Hour) })
		w, _, _ := b.delivered(handler(succeeds))
		b.near("back after", b.back(w), 15*time.Minute-time.Second)
	})
	in(t, "exhausted: ended by the rule, deleted, nobody works on it", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.Attempts = b.policy.MaxAttempts })
		w, _, _ := b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskAbandoned)
		b.empty("exhausted")
		if len(w.ends()) != 0 {
			b.Error("somebody worked on it")
		}
	})
	in(t, "exhausted with all stages accepted: done", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.Attempts, r.Accepted = b.policy.MaxAttempts, r.Stages })
		b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskDone)
		b.empty("exhausted")
	})
	in(t, "a stale message of an exhausted row ends it all the same", func(b *bench) {
		row := b.row(0, func(r *pipeline.Task) { r.Attempts, r.Ring = b.policy.MaxAttempts, 7 })
		row.Ring = 3
		b.must(b.queues.Ring(b.ctx, row))
		b.delivered(handler(succeeds))
		b.status(chunk0, pipeline.TaskAbandoned)
	})
	for _, status := range []pipeline.TaskStatus{pipeline.TaskDone, pipeline.TaskAbandoned, pipeline.TaskCancelled, pipeline.TaskParked} {
		in(t, string(status)+": deleted, and stays so", func(b *bench) {
			b.rung(0, func(r *pipeline.Task) { r.Status = status })
			b.delivered(handler(succeeds))
			b.status(chunk0, status)
			b.empty(string(status))
		})
	}
	in(t, "missing: deleted, and no row appears", func(b *bench) {
		row := b.rung(0)
		b.store.DeleteTask(row.Ref)
		b.delivered(handler(succeeds))
		if _, err := b.store.Task(b.ctx, row.Ref); err == nil {
			b.Error("a deleted row came back")
		}
		b.empty("missing")
	})
	in(t, "of a newer version: left to those who know it, no dead letter, and it is told", func(b *bench) {
		row := b.row(0)
		m := row.Message()
		m.Format = pipeline.FormatVersion + 1
		_, err := b.queues.Work.Send(b.ctx, []pipeline.Message{m})
		b.must(err)
		var log strings.Builder
		w, _, inFlight := b.delivered(handler(succeeds), func(h *host) { h.cfg.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		if row := b.status(chunk0, pipeline.TaskPending); inFlight != 1 || row.Generation != 0 || len(b.letters(b.queues.Work)) != 0 {
			b.Errorf("got %d in flight, generation %d and %d dead letters, want it left", inFlight, row.Generation, len(b.letters(b.queues.Work)))
		}
		b.near("back after", b.back(w), 9*time.Second)
		if !strings.Contains(log.String(), "newer version") {
			b.Errorf("got the log %q", log.String())
		}
	})
	in(t, "undecodable: a dead letter with the reason, deleted", func(b *bench) {
		b.queues.Work.(*memory.Queue).SendRaw([]byte(`{"hello": 1`))
		b.delivered(handler(succeeds))
		letters := b.letters(b.queues.Work)
		if len(letters) != 1 || letters[0].Reason.Kind != pipeline.Invalid || string(letters[0].Body) != `{"hello": 1` {
			b.Errorf("got dead letters %+v, want one with the body and the reason", letters)
		}
		b.empty("undecodable")
	})
	in(t, "undecodable while dead letters fail: left, so that nothing is lost", func(b *bench) {
		b.queues.Work.(*memory.Queue).SendRaw([]byte(`{"hello": 1`))
		_, _, inFlight := b.delivered(handler(succeeds), around(pipelinetest.LoseWrites(1, "Bury")))
		if inFlight != 1 {
			b.Errorf("got %d in flight, want the message", inFlight)
		}
	})
	in(t, "its generation is older than the row's: looked at again and claimed", func(b *bench) {
		row := b.row(0, func(r *pipeline.Task) { r.Generation = 7 })
		row.Generation = 3
		b.must(b.queues.Ring(b.ctx, row))
		b.delivered(handler(succeeds))
		if row := b.status(chunk0, pipeline.TaskDone); row.Generation != 8 {
			b.Errorf("got generation %d, want 8", row.Generation)
		}
	})
	in(t, "the store is busy for long: left, to be looked at again soon", func(b *bench) {
		b.rung(0)
		w := b.start("worker", handler(succeeds), around(pipelinetest.LoseWrites(6, "Claim")))
		b.pass(5 * time.Second)
		b.status(chunk0, pipeline.TaskPending)
		b.pass(16 * time.Second)
		b.status(chunk0, pipeline.TaskDone)
		if w.claims != 7 {
			b.Errorf("got %d claims sent, want 6 lost and one", w.claims)
		}
	})
	in(t, "a clock that differs too much: nothing is claimed, and the message is left", func(b *bench) {
		b.rung(0)
		w, _, inFlight := b.delivered(handler(succeeds), func(h *host) {
			h.cfg.Skew = func() time.Duration { return -b.policy.MaxSkew/2 - time.Millisecond }
		})
		if w.claims != 0 || inFlight != 1 {
			b.Errorf("got %d claims and %d messages in flight, want none and one", w.claims, inFlight)
		}
		b.status(chunk0, pipeline.TaskPending)
	})
	in(t, "no handler for its kind: a deferral that says so", func(b *bench) {
		b.rung(0)
		b.delivered(nil, func(h *host) { h.cfg.Handlers = nil })
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Deferrals != 1 || row.Attempts != 0 || !strings.Contains(row.Reason.Cause, "handler") {
			b.Errorf("got %d deferrals, %d attempts, %q, want one deferral that speaks of the handler", row.Deferrals, row.Attempts, row.Reason.Cause)
		}
	})
	in(t, "its job does not exist: cancelled with that reason", func(b *bench) {
		row := pipelinetest.NewRow("feedfeedfe-1", pipeline.WorkTask(0), func(r *pipeline.Task) { r.ReadyAt = b.clock.Now() })
		_, err := b.store.PutTasks(b.ctx, []pipeline.Task{row})
		b.must(err)
		b.must(b.queues.Ring(b.ctx, row))
		b.delivered(handler(succeeds))
		if got := b.status(row.Ref, pipeline.TaskCancelled); got.Reason.Kind != pipeline.Cancelled {
			b.Errorf("got reason %s, want cancelled", got.Reason)
		}
	})
}

func TestJobClaims(t *testing.T) {
	in(t, "a job that holds as many claims as it may: its row is rung later, by no fault of its own", func(b *bench) {
		b.policy.MaxJobClaims = 2
		for n := 1; n <= 2; n++ {
			_, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(b.row(n), "other", b.clock.Now()))
			b.must(err)
		}
		b.rung(0, func(r *pipeline.Task) { r.Rings, r.Ring = 3, 3 })
		began := b.clock.Now()
		b.delivered(handler(succeeds))
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Rings != 0 || row.Ring != 4 || row.Attempts != 0 {
			b.Errorf("got %d rings, ring number %d, %d attempts, want 0, 4, 0", row.Rings, row.Ring, row.Attempts)
		}
		b.near("due after", row.DueAt.Sub(began), 30*time.Second)
		b.empty("job full")
	})
	in(t, "another job goes on meanwhile", func(b *bench) {
		b.policy.MaxJobClaims = 1
		_, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(b.row(1), "other", b.clock.Now()))
		b.must(err)
		_, _, err = b.store.Submit(b.ctx, pipelinetest.NewJob("beef-1", func(j *pipeline.Job) { j.Deadline = 0 }), pipelinetest.NewRow("beef-1", pipeline.SplitTask))
		b.must(err)
		row := pipelinetest.NewRow("beef-1", pipeline.WorkTask(0), func(r *pipeline.Task) { r.ReadyAt = b.clock.Now() })
		_, err = b.store.PutTasks(b.ctx, []pipeline.Task{row})
		b.must(err)
		b.must(b.queues.Ring(b.ctx, row))
		b.delivered(handler(succeeds))
		b.status(row.Ref, pipeline.TaskDone)
	})
}

func TestAlone(t *testing.T) {
	lost := func(r *pipeline.Task) { r.Losses = 2 }
	in(t, "a row that was lost twice waits until the worker holds no other claim", func(b *bench) {
		var mu sync.Mutex
		var order []string
		working := 0
		work := func(by int, a pipeline.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			if working += by; by > 0 && a.Claim().Losses > 0 && working != 1 {
				b.Errorf("the suspect began beside %d others", working-1)
			}
			if by < 0 {
				order = append(order, string(a.Claim().ID))
			}
		}
		h := handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			work(1, a)
			_ = b.clock.Sleep(ctx, 20*time.Second)
			work(-1, a)
			return succeeds(ctx, a)
		})
		for n := 1; n <= 3; n++ {
			b.rung(n)
		}
		b.start("worker", h)
		b.pass(5 * time.Second)
		b.rung(0, lost)
		b.pass(time.Second)
		for n := 4; n <= 9; n++ {
			b.rung(n)
		}
		b.pass(3 * time.Minute)
		for n := range 10 {
			b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}, pipeline.TaskDone)
		}
		if len(order) != 10 || order[0] == string(chunk0.ID) {
			b.Errorf("got the order %v, want the neighbours of the suspect first", order)
		}
	})
	in(t, "several suspects are done one after the other, on both queues", func(b *bench) {
		for n := range 6 {
			b.rung(n, lost)
		}
		split := pipelinetest.NewRow(theJob, "finalize#1", lost, func(r *pipeline.Task) { r.ReadyAt, r.Stages = b.clock.Now(), 1 })
		_, err := b.store.PutTasks(b.ctx, []pipeline.Task{split})
		b.must(err)
		b.must(b.queues.Ring(b.ctx, split))
		b.start("worker", handler(succeeds))
		b.pass(time.Minute)
		for n := range 6 {
			b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}, pipeline.TaskDone)
		}
		b.status(split.Ref, pipeline.TaskDone)
	})
	in(t, "a drain while a suspect waits leaves no claim behind", func(b *bench) {
		b.rung(1)
		w := b.start("worker", tries(1, 10*time.Second))
		b.pass(time.Second)
		b.rung(0, lost)
		b.pass(time.Second)
		w.drained()
		if row := b.read(chunk0); row.Status != pipeline.TaskPending || row.Attempts != 0 {
			b.Errorf("got %s with %d attempts, want pending without", row.Status, row.Attempts)
		}
	})
}
