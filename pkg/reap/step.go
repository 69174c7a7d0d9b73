package reap

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// standing is what a sweep knows of a row's job.
type standing struct {
	job     pipeline.Job
	missing bool
	noSplit bool // its split ended otherwise than done: no other row may go on
}

// standing reads the job of a row.
func (r *Reaper) standing(ctx context.Context, id pipeline.JobID) (standing, error) {
	job, err := r.cfg.Store.Job(ctx, id)
	s := standing{job: job, missing: errors.Is(err, pipeline.ErrNotFound)}
	if err != nil && !s.missing {
		return s, fmt.Errorf("read job %s: %w", id, err)
	}
	split, err := r.cfg.Store.Task(ctx, pipeline.Ref{Job: id, ID: pipeline.SplitTask})
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return s, fmt.Errorf("read the split of job %s: %w", id, err)
	}
	s.noSplit = err == nil && split.Status.Ended() && split.Status != pipeline.TaskDone
	return s, nil
}

// known is the standing as this sweep read it before. Where it would end the row, it is read anew, later than the
// row: the job may have been redriven since, and the row with it.
func (r *Reaper) known(ctx context.Context, row pipeline.Task, jobs map[pipeline.JobID]standing) (standing, error) {
	s, known := jobs[row.Job]
	if known && s.why(row, r.cfg.Clock.Now()).None() {
		return s, nil
	}
	s, err := r.standing(ctx, row.Job)
	if err == nil {
		jobs[row.Job] = s
	}
	return s, err
}

// why is the reason to end a row that nobody holds; none if it may go on.
func (s standing) why(row pipeline.Task, now pipeline.Instant) pipeline.Failure {
	kind := row.ID.Kind()
	switch {
	case s.missing:
		return pipeline.Fail(pipeline.Cancelled, "its job does not exist")
	case s.job.Status.Ended():
		return pipeline.Fail(pipeline.Cancelled, "the job has ended: %s", s.job.Status)
	case kind == pipeline.TaskFinalize:
		return pipeline.Failure{} // it is what ends a job, cancelled or late
	case s.job.Status == pipeline.JobCancelling && !s.job.Reason.None():
		return s.job.Reason
	case s.job.Status == pipeline.JobCancelling:
		return pipeline.Fail(pipeline.Cancelled, "the job was cancelled")
	case s.job.Expired(now):
		return pipeline.Fail(pipeline.Cancelled, "the job's deadline was over")
	case s.noSplit && kind == pipeline.TaskWork:
		return pipeline.Fail(pipeline.Cancelled, "the split of the document was given up")
	}
	return pipeline.Failure{}
}

// step does what a due row needs, and says what it was.
func (r *Reaper) step(ctx context.Context, row pipeline.Task, jobs map[pipeline.JobID]standing) (did string, err error) {
	if err := row.Newer(); err != nil {
		return "", err
	}
	now := r.cfg.Clock.Now()
	switch row.Status {
	case pipeline.TaskAbandoned:
		return "buried", r.Bury(ctx, row)
	case pipeline.TaskClaimed:
		return r.claimed(ctx, row, now)
	case pipeline.TaskPending, pipeline.TaskParked:
	default:
		return "", nil
	}
	s, err := r.known(ctx, row, jobs)
	if err != nil {
		return "", err
	}
	switch why := s.why(row, now); {
	case !why.None():
		return "closed", r.close(ctx, row, why)
	case row.Status == pipeline.TaskParked && s.job.Runs(row.ID.Kind()):
		return r.unpark(ctx, row, now)
	case row.Status == pipeline.TaskParked:
		if job, err := r.cfg.Store.Job(ctx, row.Job); err != nil || job.Runs(row.ID.Kind()) {
			return "", err // it began to run during this sweep: the next one unparks the row
		}
		_, err := r.cfg.Store.Postpone(ctx, row, now.Add(r.cfg.Policy.RingLimit))
		return "", err
	case row.Attempts >= r.cfg.Policy.MaxAttempts:
		return "exhausted", r.Exhaust(ctx, row)
	}
	return r.ring(ctx, row)
}

// claimed expires a lapsed claim; a live one is looked at again when it may have lapsed.
func (r *Reaper) claimed(ctx context.Context, row pipeline.Task, now pipeline.Instant) (string, error) {
	lapsed := pipeline.ExpireWrite{Now: now, MaxSkew: r.cfg.Policy.MaxSkew}
	if row.Expirable(lapsed) { // as the index shows it, which lags: what its worker achieved since decides what its loss is
		fresh, err := r.cfg.Store.Task(ctx, row.Ref)
		if err != nil || !fresh.Expirable(lapsed) {
			return "", err
		}
		_, err = r.Expire(ctx, fresh, now)
		return expired, err
	}
	due := max(row.ExpiresAt.Add(r.cfg.Policy.MaxSkew)+1, now+1)
	_, err := r.cfg.Store.Postpone(ctx, row, due)
	return "", err
}

func (r *Reaper) unpark(ctx context.Context, row pipeline.Task, now pipeline.Instant) (string, error) {
	pending, err := r.cfg.Store.Unpark(ctx, row, now)
	if err != nil {
		return "", err
	}
	_, err = r.ring(ctx, pending)
	return "unparked", err
}

// Unclaimable is what a sweep calls a row that it rang past MaxRings.
const Unclaimable = "unclaimable"

// ring says in the row that a message is about to be sent, then sends it. Past MaxRings the row is shown as
// unclaimable and rung on: a long queue or a closed event source must not kill healthy work.
func (r *Reaper) ring(ctx context.Context, row pipeline.Task) (did string, err error) {
	did = "rung"
	due := r.cfg.Clock.Now().Add(r.cfg.Policy.RingWait(row.Rings))
	rung, err := r.cfg.Store.Ring(ctx, pipeline.RingWrite{Seen: row, Due: due, Count: row.Rings + 1})
	if err != nil {
		return did, err
	}
	if rung.Unclaimable(r.cfg.Policy) {
		did = Unclaimable
		r.cfg.Log.ErrorContext(ctx, "row is unclaimable: rung and never claimed", "task", row.Ref.String(), "rings", rung.Rings)
	}
	if err := r.cfg.Queues.Ring(ctx, rung); err != nil {
		r.cfg.Log.WarnContext(ctx, "bell not sent; it is rung again", "task", row.Ref.String(), "error", err)
	}
	return did, nil
}

// close ends a row that nobody holds, and opens the finalize if it was the last.
func (r *Reaper) close(ctx context.Context, row pipeline.Task, why pipeline.Failure) error {
	if _, err := pipeline.CancelRow(ctx, r.cfg.Store, row, why, r.cfg.Clock.Now()); err != nil {
		return err
	}
	return r.open(ctx, row)
}

// open opens the job's finalize if this was the last of its tasks.
func (r *Reaper) open(ctx context.Context, row pipeline.Task) error {
	if row.ID.Kind() == pipeline.TaskFinalize {
		return nil
	}
	err := r.cfg.Opener.MaybeFinalize(ctx, row.Job)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil // a row without a job
	}
	return err
}
