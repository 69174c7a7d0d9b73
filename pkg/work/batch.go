package work

import (
	"context"
	"runtime/debug"
	"sync"

	"holdfast/pkg/pipeline"
)

// Batch works on deliveries that were received by somebody else and handed over together, as an event source does, and
// returns when each has been seen to: back are those that must stay in the queue, the others are to be deleted by
// whoever received them. Nothing that goes wrong with one of them, a panic included, concerns another.
//
// As in [Worker.Run], nothing is claimed once drain is done, calls in flight finish for Grace, and when ctx is done
// everything is dropped.
//
// What a drain releases is rung by the reaper, not here: a function that sends to the queue it is fed from is cut off
// after a number of rounds.
func (w *Worker) Batch(ctx, drain context.Context, source int, deliveries []pipeline.Delivery) (back []pipeline.Delivery) {
	hard, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	drain, stop := context.WithCancel(drain)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	b := *w
	b.fed = true
	b.jobs = newJobs(w.cfg.Store, w.clock, w.cfg.Policy, w.cfg.Log)
	b.jobs.drain = drain
	handed := &handedQueue{Queue: w.cfg.Sources[source].Queue, done: map[string]bool{}}
	b.cfg.Sources = append([]Source(nil), w.cfg.Sources...)
	b.cfg.Sources[source].Queue = handed

	var group, watch pipeline.Group
	finished := make(chan struct{})
	watch.Go(func() { b.graceOver(ctx, drain, finished, drop) })
	for _, d := range deliveries {
		group.Go(func() { b.one(hard, drain, source, d) })
	}
	group.Wait()
	close(finished)
	watch.Wait()
	b.jobs.wait()
	for _, d := range deliveries {
		if !handed.deleted(d) {
			back = append(back, d)
		}
	}
	return back
}

// one sees to a delivery of a batch.
func (w *Worker) one(ctx, drain context.Context, source int, d pipeline.Delivery) {
	taken := w.crew.take(drain, source, 1) > 0
	if taken {
		defer w.crew.give(source)
	}
	if drain.Err() != nil { // what there is no time for is not claimed
		w.delay(context.WithoutCancel(ctx), source, d, 0)
		return
	}
	w.deliver(ctx, source, d)
}

// deliver is Deliver for a process that goes on whatever comes of it. What it panics with is logged, and the delivery
// comes back: if it was claimed, the claim lapses.
func (w *Worker) deliver(ctx context.Context, source int, d pipeline.Delivery) {
	defer func() {
		if r := recover(); r != nil {
			w.cfg.Log.ErrorContext(ctx, "delivery panicked", "queue", w.cfg.Sources[source].Name, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	w.Deliver(ctx, source, d)
}

// handedQueue is a queue whose deliveries somebody else received, who deletes them too.
type handedQueue struct {
	pipeline.Queue

	mu   sync.Mutex
	done map[string]bool // by receipt
}

// Delete notes it for whoever received them.
func (q *handedQueue) Delete(_ context.Context, deliveries []pipeline.Delivery) (failed []pipeline.Delivery, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range deliveries {
		q.done[d.Receipt] = true
	}
	return nil, nil
}

func (q *handedQueue) deleted(d pipeline.Delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.done[d.Receipt]
}
