package work

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// attempt works on a claimed task and ends the claim. Ending and bookkeeping go on when the work was dropped: a
// shutdown takes the time of a few writes.
func (w *Worker) attempt(ctx context.Context, source int, d pipeline.Delivery, c *claimed) {
	keep := context.WithoutCancel(ctx)
	r, leave, err := w.jobs.follow(keep, c.Job)
	if err != nil {
		w.cfg.Log.WarnContext(ctx, "read of the job failed", "task", c.Ref.String(), "error", err)
		r = &reading{changed: make(chan struct{})} // never fresh: nothing is sent
		leave = func(ended bool) bool { return ended }
	}
	followed := true
	defer func() {
		if followed { // a panic: nobody reads the job for an attempt that is gone
			leave(false)
		}
	}()
	a := newAttempt(w, c, r, w.jobs.drain)
	w.cfg.Observe(Event{What: "claim", Job: c.Job, Task: c.ID, Worker: w.cfg.Worker, N: c.Attempts})
	var e pipeline.Ending
	switch stop := jobStops(a.Job(), c.ID.Kind(), w.clock.Now()); {
	case errors.Is(err, pipeline.ErrNotFound):
		e = ending(pipeline.Fail(pipeline.Cancelled, "its job does not exist"))
	case err != nil:
		e = ending(pipeline.Fail(pipeline.StoreFault, "read the job: %v", err))
	case stop != nil:
		a.halt(stop)
		e = a.stopEnding(stop)
	default:
		e = a.run(ctx)
	}
	ended := w.end(keep, source, d, a, e)
	followed = false
	if leave(ended) {
		w.open(keep, c.Job)
	}
}

// open opens the job's finalize if all of its tasks have ended.
func (w *Worker) open(ctx context.Context, job pipeline.JobID) {
	if !w.sizes.mayOpen(job) {
		return
	}
	if err := w.cfg.Opener.MaybeFinalize(ctx, job); err != nil {
		w.cfg.Log.WarnContext(ctx, "opening of finalize failed; the reaper does it", "job", job, "error", err)
	}
}

// end writes the attempt's record, then ends the claim, then sees to what follows. It says whether a task of those that
// a job waits for has ended.
func (w *Worker) end(ctx context.Context, source int, d pipeline.Delivery, a *attempt, e pipeline.Ending) (ended bool) {
	c, v, row, err := w.decideEnd(ctx, a, e)
	for a.acceptedMeanwhile(err) { // at most once for each stage
		c, v, row, err = w.decideEnd(ctx, a, e)
	}
	log := w.cfg.Log.With("task", c.Ref.String(), "generation", c.Generation)
	if err != nil {
		// The reaper expires the claim and ends it by the same rule; what was answered is kept.
		log.WarnContext(ctx, "end failed", "outcome", e.Outcome, "error", err)
		if !errors.Is(err, pipeline.ErrFenced) {
			w.delay(ctx, source, d, w.cfg.Policy.ClaimTTL)
		}
		return false
	}
	log.InfoContext(ctx, "attempt ended", "outcome", e.Outcome, "status", row.Status, "kind", e.Failure.Kind)
	w.cfg.Observe(Event{What: "end", Job: c.Job, Task: c.ID, Worker: w.cfg.Worker, Status: row.Status, Outcome: e.Outcome, Kind: e.Failure.Kind})
	w.after(ctx, source, d, row, v, e)
	return row.Status.Ended() && row.ID.Kind() != pipeline.TaskFinalize
}

// decideEnd works out what becomes of the row, and writes it.
func (w *Worker) decideEnd(ctx context.Context, a *attempt, e pipeline.Ending) (pipeline.Claim, pipeline.Verdict, pipeline.Task, error) {
	now := w.clock.Now()
	c := a.Claim()
	a.mu.Lock()
	answers, used := a.answers, a.used
	a.mu.Unlock()
	standing := pipeline.StandingOf(c.Task, a.Job().Deadline)
	standing.Answers = answers
	v := pipeline.Next(w.cfg.Policy, standing, e, now, w.cfg.Jitter())
	row, err := w.writeEnd(ctx, a, e, v, used, now)
	return c, v, row, err
}

// acceptedMeanwhile says that an end was refused because a stage is accepted that the attempt does not know of: its
// answer was lost, and work that is finished is done whatever the ending says. The attempt knows it then.
func (a *attempt) acceptedMeanwhile(err error) bool {
	old, refused := pipeline.Old(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !refused || !holds(old, a.claim.Fence()) || old.Accepted <= a.claim.Accepted {
		return false
	}
	a.claim.Accepted, a.claim.Bodies = old.Accepted, old.Bodies
	a.claim.Attempts, a.claim.Losses = old.Attempts, old.Losses
	return true
}

// writeEnd puts journal and record, then the row. An End whose answer was lost is recognised by ended_by.
func (w *Worker) writeEnd(ctx context.Context, a *attempt, e pipeline.Ending, v pipeline.Verdict, used int, now pipeline.Instant) (pipeline.Task, error) {
	c := a.Claim()
	if err := w.persistFor(ctx, endTries, func() error { return a.flush(ctx) }); err != nil {
		return pipeline.Task{}, err
	}
	record := a.record(e, v, now)
	key := pipeline.RecordKey(c.ID, c.Generation, c.ClaimID)
	if err := w.putItem(ctx, c.Job, key, record); err != nil {
		return pipeline.Task{}, fmt.Errorf("write the record of %s: %w", c.Ref, err)
	}
	if v.Status == pipeline.TaskCancelled {
		if err := w.putItem(ctx, c.Job, pipeline.CancellationKey(c.ID), a.cancellation(e, now)); err != nil {
			return pipeline.Task{}, fmt.Errorf("write the cancellation of %s: %w", c.Ref, err)
		}
	}
	reason := e.Failure
	reason.Detail = "" // the record has it; the row stays small
	write := pipeline.EndWrite{
		Fence: c.Fence(), Verdict: v, Accepted: c.Accepted, EndedBy: c.ClaimID, Reason: reason, Allowed: used,
		ReadyAt: now.Add(v.Wait), DueAt: v.DueAt(w.cfg.Policy, now),
	}
	var row pipeline.Task
	err := w.persistFor(ctx, endTries, func() error {
		var err error
		row, err = w.cfg.Store.End(ctx, write)
		if old, refused := pipeline.Old(err); refused && old != nil && old.Generation == c.Generation && old.EndedBy == c.ClaimID {
			row, err = *old, nil
		}
		return err
	})
	return row, err
}

func (w *Worker) putItem(ctx context.Context, job pipeline.JobID, key string, v any) error {
	return w.persistFor(ctx, endTries, func() error { return w.cfg.Store.PutItem(ctx, job, key, pipeline.Encode(v)) })
}

// record is what is left of the attempt.
func (a *attempt) record(e pipeline.Ending, v pipeline.Verdict, now pipeline.Instant) pipeline.Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.journal.sums
	r.Task, r.Generation, r.Attempt, r.Ender = a.claim.ID, a.claim.Generation, a.claim.Attempts, a.claim.ClaimID
	r.Previous, r.Worker, r.Stage = a.claim.EndedBy, a.w.cfg.Worker, min(a.stage, max(1, a.claim.Stages))
	r.ClaimedAt, r.EndedAt = a.claim.ClaimedAt, now
	r.Outcome, r.Failure, r.Status, r.Counted = e.Outcome, e.Failure, v.Status, v.Counted
	r.Answers = a.answers
	r.Charged = a.used - a.began
	return r
}

func (a *attempt) cancellation(e pipeline.Ending, now pipeline.Instant) pipeline.Cancellation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return pipeline.NewCancellation(a.claim.Task, a.w.cfg.Worker, e.Failure, now)
}

// after sees to what follows an end: dead letter and delivery.
func (w *Worker) after(ctx context.Context, source int, d pipeline.Delivery, row pipeline.Task, v pipeline.Verdict, e pipeline.Ending) {
	log := w.cfg.Log.With("task", row.Ref.String())
	switch {
	case row.Status == pipeline.TaskAbandoned:
		log.WarnContext(ctx, "task abandoned", "attempt", row.Attempts, "kind", row.Reason.Kind, "cause", row.Reason.Cause)
		if err := w.cfg.Reaper.Bury(ctx, row); err != nil && !errors.Is(err, pipeline.ErrFenced) {
			log.WarnContext(ctx, "dead letter failed; the reaper sends it", "error", err)
		}
	case row.Status == pipeline.TaskPending && v.Counted:
		w.delay(ctx, source, d, row.ReadyAt.Sub(w.clock.Now()))
		return
	case row.Status == pipeline.TaskPending && e.Failure.Kind == pipeline.Shutdown && !w.fed:
		// Ready at once: rung before this worker exits, so that nobody waits for the reaper.
		if err := w.ring(ctx, source, row); err != nil {
			log.WarnContext(ctx, "ring failed; the reaper rings", "error", err)
		}
	}
	w.delete(ctx, source, d)
}

// ring says so in the row, then sends the message.
func (w *Worker) ring(ctx context.Context, source int, row pipeline.Task) error {
	due := w.clock.Now().Add(w.cfg.Policy.RingWait(row.Rings))
	rung, err := w.cfg.Store.Ring(ctx, pipeline.RingWrite{Seen: row, Due: due, Count: row.Rings + 1})
	if err != nil {
		return err
	}
	_, err = w.cfg.Sources[source].Queue.Send(ctx, []pipeline.Message{rung.Message()})
	return err
}
