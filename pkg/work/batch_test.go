package work_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/work"
)

// batch receives what is there and hands it to a worker that is asked to drain after so long, as an event source does:
// what is not back is deleted. It tells how many were handed over, and how many came back.
func (b *bench) batch(until time.Duration, h pipeline.Handler, edits ...func(*host)) (handed, back int) {
	b.Helper()
	w := b.host("function", h, edits...)
	deliveries, err := b.queues.Work.Receive(b.ctx, pipeline.MaxBatch, 0)
	b.must(err)
	drain, stop := b.clock.WithTimeout(b.ctx, until, pipeline.ErrDraining)
	defer stop()
	returned := work.New(w.cfg).Batch(b.ctx, drain, 1, deliveries)
	stays := map[string]bool{}
	for _, d := range returned {
		stays[d.Receipt] = true
	}
	for _, d := range deliveries {
		if !stays[d.Receipt] {
			_, err := b.queues.Work.Delete(b.ctx, []pipeline.Delivery{d})
			b.must(err)
		}
	}
	return len(deliveries), len(returned)
}

// byChunk handles each chunk in its own way.
func byChunk(handlers ...pipeline.Handler) handler {
	return func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
		return handlers[a.Claim().ID.Number()].Handle(ctx, a)
	}
}

func TestBatch(t *testing.T) {
	in(t, "each delivery on its own: one that fails comes back, one that panics too, the others are done", func(b *bench) {
		for n := range 4 {
			b.rung(n)
		}
		b.queues.Work.(*memory.Queue).SendRaw([]byte("not ours"))
		handed, back := b.batch(time.Hour, byChunk(handler(succeeds), fails(pipeline.Ambiguous), handler(func(context.Context, pipeline.Attempt) pipeline.Ending { panic("bad") }), fails(pipeline.Throttled)))
		if handed != 5 || back != 2 {
			b.Errorf("got %d of %d back, want the failed one and the one that panicked", back, handed)
		}
		b.status(chunk0, pipeline.TaskDone)
		for n, want := range []string{"", "ambiguous", "broken", "throttled"} {
			row := b.read(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)})
			if string(row.Reason.Kind) != want {
				b.Errorf("chunk %d: got %s, want %q", n, row.Reason, want)
			}
		}
		if letters := b.letters(b.queues.Work); len(letters) != 1 || !strings.Contains(letters[0].Reason.Cause, "decode message") {
			b.Errorf("got dead letters %v, want the one that is not ours, with the reason", letters)
		}
		b.pass(b.policy.AttemptBackoff - time.Second)
		if visible, inFlight := b.depth(); visible != 0 || inFlight != 2 {
			b.Errorf("got %d visible and %d in flight, want both to come back when they are ready", visible, inFlight)
		}
		b.pass(2 * time.Second)
		if visible, _ := b.depth(); visible != 2 {
			b.Errorf("got %d visible, want both", visible)
		}
	})
	in(t, "a panic in the engine itself is logged and comes back; nobody follows its job any more", func(b *bench) {
		b.rung(0)
		b.rung(1)
		handed, back := b.batch(time.Hour, handler(succeeds), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "End" && op.On == chunk0.String() {
				panic("the store has a bug")
			}
			return do(ctx)
		}))
		if handed != 2 || back != 1 {
			b.Errorf("got %d of %d back, want the one that panicked", back, handed)
		}
		b.status(chunk0, pipeline.TaskClaimed)
		b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(1)}, pipeline.TaskDone)
		b.sweeping(b.policy.ClaimTTL + b.policy.MaxSkew + 2*time.Second)
		b.status(chunk0, pipeline.TaskDone) // its work was accepted
	})
	in(t, "a drain releases what runs as a deferral that the reaper rings, and nothing is left to come back", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 5 * time.Second}
		began := b.clock.Mono()
		_, back := b.batch(7*time.Second, s)
		b.near("over after", b.clock.Mono()-began, 10*time.Second)
		row := b.status(chunk0, pipeline.TaskPending)
		if back != 0 || row.Deferrals != 1 || row.Attempts != 0 || row.Reason.Kind != pipeline.Shutdown || row.DueAt > b.clock.Now() {
			b.Errorf("got %d back, %d deferrals, %d attempts, %s, due %s, want one deferral that is due now", back, row.Deferrals, row.Attempts, row.Reason, row.DueAt)
		}
		if s.aborted != 0 || row.Ring != 0 {
			b.Errorf("got %d aborted and ring %d, want calls in flight to finish and no bell", s.aborted, row.Ring)
		}
		b.empty("released")
	})
	in(t, "a call that outlasts the grace is dropped, and the attempt is a deferral all the same", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: time.Hour}
		began := b.clock.Mono()
		b.batch(10*time.Second, s)
		b.near("over after", b.clock.Mono()-began, 30*time.Second)
		if row := b.status(chunk0, pipeline.TaskPending); row.Deferrals != 1 || row.Attempts != 0 || s.aborted != 1 {
			b.Errorf("got %d deferrals, %d attempts, %d aborted", row.Deferrals, row.Attempts, s.aborted)
		}
	})
	in(t, "what there is no time for is not claimed: it comes back at once", func(b *bench) {
		b.rung(0)
		b.rung(1)
		handed, back := b.batch(0, handler(succeeds))
		if handed != 2 || back != 2 {
			b.Errorf("got %d of %d back, want both", back, handed)
		}
		if row := b.status(chunk0, pipeline.TaskPending); row.Generation != 0 {
			b.Errorf("got generation %d, want no claim", row.Generation)
		}
		if visible, _ := b.depth(); visible != 2 {
			b.Errorf("got %d visible, want both", visible)
		}
	})
	in(t, "what waits to be worked on alone is not claimed once there is no time", func(b *bench) {
		b.rung(0, func(t *pipeline.Task) { t.Losses = 2 })
		b.rung(1, lots)
		_, back := b.batch(5*time.Second, byChunk(handler(succeeds), &sender{takes: time.Second}), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Claim" && op.On == chunk0.String() {
				time.Sleep(time.Second) // the other is at work by then
			}
			return do(ctx)
		}))
		if row := b.status(chunk0, pipeline.TaskPending); back != 1 || row.Generation != 0 {
			b.Errorf("got %d back and generation %d, want the lone one back, unclaimed", back, row.Generation)
		}
	})
	in(t, "more deliveries than slots: each is seen to", func(b *bench) {
		for n := range 9 {
			b.rung(n)
		}
		handed, back := b.batch(time.Hour, tries(1, 10*time.Second))
		if handed != 9 || back != 0 {
			b.Errorf("got %d of %d back, want none", back, handed)
		}
	})
	in(t, "a worker tells when it is busy and when it is not any more", func(b *bench) {
		b.rung(0)
		b.rung(1)
		var told []bool
		b.batch(time.Hour, tries(1, 10*time.Second), func(h *host) {
			h.cfg.Busy = func(busy bool) { told = append(told, busy) }
		})
		if !slices.Equal(told, []bool{true, false}) {
			b.Errorf("got %v, want busy once and idle once for two tasks together", told)
		}
	})
	in(t, "dropped by its host: it returns, and the attempt is a shutdown", func(b *bench) {
		b.rung(0, lots)
		ctx, drop := b.clock.WithTimeout(b.ctx, 3*time.Second, pipeline.ErrDraining)
		defer drop()
		deliveries, err := b.queues.Work.Receive(b.ctx, 1, 0)
		b.must(err)
		w := b.host("function", &sender{takes: time.Hour})
		began := b.clock.Mono()
		work.New(w.cfg).Batch(ctx, b.ctx, 1, deliveries)
		b.near("over after", b.clock.Mono()-began, 3*time.Second)
		if row := b.status(chunk0, pipeline.TaskPending); row.Reason.Kind != pipeline.Shutdown {
			b.Errorf("got %s, want a shutdown", row.Reason)
		}
	})
}
