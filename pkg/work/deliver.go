package work

import (
	"context"
	"errors"
	"time"

	"holdfast/pkg/pipeline"
)

// earlyLimit is the longest that a delivery is put off for: queues delay by 15 minutes at most.
const earlyLimit = 15 * time.Minute

// busyWait is when a delivery is looked at again after the store would not answer.
const busyWait = 10 * time.Second

// Deliver does what the arrival of a message asks for. Nothing ever ends a row because of a message: the row decides.
//
//	the row                                        the delivery
//	its ring is newer, and it cannot be claimed    deleted
//	claimed by us, ends done/abandoned/cancelled/parked   deleted
//	claimed by us, ends pending after a failure    left, visible at ready_at: tier two
//	claimed by us, ends in a deferral              deleted; the reaper rings at ready_at
//	held by another                                visible when that attempt must be over
//	its job holds as many claims as one may        deleted; due again in 30 s
//	early                                          visible at ready_at, at most 15 min
//	exhausted                                      Next is applied; deleted
//	ended, cancelled, parked, missing              deleted
//	undecodable                                    dead letter with the reason; deleted
//	of a newer version, or its message is          left to those who know it
func (w *Worker) Deliver(ctx context.Context, source int, d pipeline.Delivery) {
	w.load.change(1)
	defer w.load.change(-1)
	m, err := pipeline.DecodeMessage(d.Body)
	switch {
	case errors.Is(err, pipeline.ErrNewer):
		w.cfg.Log.WarnContext(ctx, "message is left to others", "error", err)
		w.delay(ctx, source, d, busyWait)
		return
	case err != nil:
		w.undecodable(ctx, source, d, err)
		return
	}
	log := w.cfg.Log.With("task", m.Ref().String())
	if skewed := w.skew(); skewed > w.cfg.Policy.MaxSkew/2 {
		log.WarnContext(ctx, "clock differs too much from the store's; nothing is claimed", "skew", skewed)
		w.delay(ctx, source, d, busyWait)
		return
	}
	if w.full(ctx, m) {
		w.delete(ctx, source, d)
		return
	}
	c, r, done, err := w.claim(ctx, source, m)
	defer done()
	switch {
	case err != nil:
		log.WarnContext(ctx, "claim failed", "error", err)
		w.delay(ctx, source, d, busyWait)
	case r != nil:
		w.refused(ctx, source, d, m, r)
	default:
		w.attempt(ctx, source, d, c)
	}
}

func (w *Worker) skew() time.Duration {
	if w.cfg.Skew == nil {
		return 0
	}
	return w.cfg.Skew().Abs()
}

// refused decides about a delivery whose row could not be claimed.
func (w *Worker) refused(ctx context.Context, source int, d pipeline.Delivery, m pipeline.Message, r *refusal) {
	now := w.clock.Now()
	if r.row != nil && r.row.Ring > m.Ring && r.why != pipeline.RefusedExhausted {
		w.delete(ctx, source, d)
		return
	}
	switch r.why {
	case pipeline.RefusedHeld:
		wait := busyWait
		if r.row != nil {
			wait = w.cfg.Policy.HeldWait(*r.row, now)
		}
		w.delay(ctx, source, d, wait)
	case pipeline.RefusedEarly:
		w.delay(ctx, source, d, min(r.row.ReadyAt.Sub(now), earlyLimit))
	case pipeline.RefusedExhausted:
		if err := w.cfg.Reaper.Exhaust(ctx, *r.row); err != nil && !errors.Is(err, pipeline.ErrFenced) {
			w.cfg.Log.WarnContext(ctx, "ending of an exhausted row failed; the reaper does it", "task", m.Ref().String(), "error", err)
		}
		w.delete(ctx, source, d)
	default: // missing, ended, parked
		w.delete(ctx, source, d)
	}
}

// undecodable sends what is not ours to the dead letters, with the reason. It is deleted only once that has worked.
func (w *Worker) undecodable(ctx context.Context, source int, d pipeline.Delivery, cause error) {
	letter := pipeline.DeadLetter{
		Body: d.Body, Reason: pipeline.Fail(pipeline.Invalid, "%v", cause),
		Receives: d.Receives, SentAt: d.SentAt, BuriedAt: w.clock.Now(),
	}
	if err := w.cfg.Sources[source].Queue.Bury(ctx, letter); err != nil {
		w.cfg.Log.WarnContext(ctx, "dead letter failed", "error", err)
		return // it comes back, and the queue's own limit of receives is the net
	}
	w.cfg.Log.WarnContext(ctx, "undecodable message dead-lettered", "error", cause)
	w.delete(ctx, source, d)
}

// full says that the job holds as many claims as one job may; its row is rung later, through no fault of its own.
func (w *Worker) full(ctx context.Context, m pipeline.Message) bool {
	if m.Task.Kind() != pipeline.TaskWork {
		return false
	}
	held, err := w.sizes.claims(ctx, m.Job)
	if err != nil || held < w.cfg.Policy.MaxJobClaims {
		return false
	}
	row, err := w.cfg.Store.Task(ctx, m.Ref())
	if err != nil || row.Status != pipeline.TaskPending {
		return false
	}
	write := pipeline.RingWrite{Seen: row, Due: w.clock.Now().Add(30 * time.Second), Count: 0}
	_, err = w.cfg.Store.Ring(ctx, write)
	return err == nil
}

func (w *Worker) delete(ctx context.Context, source int, d pipeline.Delivery) {
	failed, err := w.cfg.Sources[source].Queue.Delete(ctx, []pipeline.Delivery{d})
	if err != nil || len(failed) > 0 { // it comes back once more and meets the row as it is then
		w.cfg.Log.WarnContext(ctx, "delete failed", "queue", w.cfg.Sources[source].Name, "error", err)
	}
}

func (w *Worker) delay(ctx context.Context, source int, d pipeline.Delivery, after time.Duration) {
	if err := w.cfg.Sources[source].Queue.Delay(ctx, d, max(0, after)); err != nil { // an expired receipt: it is visible already
		w.cfg.Log.WarnContext(ctx, "delay failed", "queue", w.cfg.Sources[source].Name, "error", err)
	}
}
