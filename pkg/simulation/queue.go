package simulation

import (
	"context"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
)

// queue is one process's end of a queue: its calls park, and messages are lost, doubled, late, or come back.
type queue struct {
	p     *process
	inner *memory.Queue
	name  string
}

var _ pipeline.Queue = (*queue)(nil)

// Send sends, unless the message is lost, late or doubled.
func (q *queue) Send(ctx context.Context, messages []pipeline.Message) (failed []pipeline.Message, err error) {
	w := q.p.w
	on := q.name
	if len(messages) > 0 {
		on = messages[0].Ref().String()
	}
	err = q.p.park(ctx, &waiter{name: "Send", on: on, write: true}, func(ctx context.Context, x *waiter) error {
		w.audit.Sent(q.p.name, messages, x.fault != "")
		switch x.fault {
		case LoseMessage:
			return nil
		case DelayMessage:
			w.later(w.between(x, time.Second, 20*time.Minute), "late message", on, func() { _, _ = q.inner.Send(w.ctx, messages) })
			return nil
		case DoubleMessage:
			_, _ = q.inner.Send(ctx, messages)
		}
		failed, err = q.inner.Send(ctx, messages)
		return err
	})
	return failed, err
}

// Receive waits until there is a message, or its wait is over.
func (q *queue) Receive(ctx context.Context, limit int, wait time.Duration) (deliveries []pipeline.Delivery, err error) {
	w := q.p.w
	ready := func() bool {
		visible, _, _ := q.inner.Depth(w.ctx)
		return visible > 0 || ctx.Err() != nil
	}
	x := &waiter{name: "Receive", on: q.name, write: true, ready: ready, due: w.sched.time() + wait}
	err = q.p.park(ctx, x, func(ctx context.Context, x *waiter) error {
		deliveries, err = q.inner.Receive(ctx, limit, 0)
		if len(deliveries) > 0 {
			w.sched.mark(w.sched.time() + w.visibility)
			w.note("%s", deliveries[0].Body)
		}
		if x.fault == BuryEarly {
			q.bury(ctx, deliveries)
			deliveries = nil
		}
		return err
	})
	if err != nil {
		return nil, err // what was received is lost until it is visible again
	}
	return deliveries, nil
}

// bury does what a queue does with a message that was received too often.
func (q *queue) bury(ctx context.Context, deliveries []pipeline.Delivery) {
	for _, d := range deliveries {
		letter := pipeline.DeadLetter{Body: d.Body, Receives: d.Receives, SentAt: d.SentAt, Native: true}
		_ = q.inner.Bury(ctx, letter)
	}
	_, _ = q.inner.Delete(ctx, deliveries)
}

// Delete removes deliveries; they may come back.
func (q *queue) Delete(ctx context.Context, deliveries []pipeline.Delivery) (failed []pipeline.Delivery, err error) {
	w := q.p.w
	err = q.p.park(ctx, &waiter{name: "Delete", on: q.name, write: true}, func(ctx context.Context, x *waiter) error {
		failed, err = q.inner.Delete(ctx, deliveries)
		if x.fault == Undelete {
			for _, d := range deliveries {
				w.later(w.between(x, 0, 2*time.Minute), "delivered after its delete", q.name, func() { q.inner.SendRaw(d.Body) })
			}
		}
		return err
	})
	return failed, err
}

// Delay puts a delivery off.
func (q *queue) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	w := q.p.w
	return q.p.park(ctx, &waiter{name: "Delay", on: q.name, write: true}, func(ctx context.Context, _ *waiter) error {
		w.sched.mark(w.sched.time() + after)
		w.note("by %v", after)
		return q.inner.Delay(ctx, d, after)
	})
}

// Bury sends a dead letter.
func (q *queue) Bury(ctx context.Context, letter pipeline.DeadLetter) error {
	ref := pipeline.Ref{Job: letter.Job, ID: letter.Task}
	return q.p.park(ctx, &waiter{name: "Bury", on: ref.String(), write: true}, func(ctx context.Context, _ *waiter) error {
		q.p.w.audit.Buried(letter)
		return q.inner.Bury(ctx, letter)
	})
}

// DeadLetters is one page of the dead letters.
func (q *queue) DeadLetters(ctx context.Context, cursor string) (letters []pipeline.DeadLetter, next string, err error) {
	err = q.p.park(ctx, &waiter{name: "DeadLetters", on: q.name}, func(ctx context.Context, _ *waiter) error {
		letters, next, err = q.inner.DeadLetters(ctx, cursor)
		return err
	})
	return letters, next, err
}

// Depth counts.
func (q *queue) Depth(ctx context.Context) (visible, inFlight int, err error) {
	err = q.p.park(ctx, &waiter{name: "Depth", on: q.name}, func(ctx context.Context, _ *waiter) error {
		visible, inFlight, err = q.inner.Depth(ctx)
		return err
	})
	return visible, inFlight, err
}
