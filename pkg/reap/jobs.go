package reap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/pkg/pipeline"
)

// openJobs looks at every job that has not ended, where it stopped the last time: rows of cancelled or late ones are
// ended whatever their time, and a finalize that nobody opened is opened. A job is looked at whole at most every
// RenewEvery, and less often if there are many.
func (r *Reaper) openJobs(ctx context.Context, end time.Duration, report Report) error {
	var errs []error
	r.mu.Lock()
	at := r.jobs
	r.mu.Unlock()
	for r.cfg.Clock.Mono() < end {
		jobs, next, err := r.cfg.Store.OpenJobs(ctx, at.page)
		if err != nil {
			r.stopAtJob(jobsCursor{})
			return errors.Join(append(errs, err)...)
		}
		for _, job := range afterJob(jobs, at.job) {
			if r.cfg.Clock.Mono() >= end {
				return errors.Join(errs...)
			}
			at.job = job.ID
			at.seen++
			r.stopAtJob(at)
			if !r.turn(job.ID) {
				continue
			}
			if err := guard(func() error { return r.job(ctx, job, report) }); err != nil {
				errs = append(errs, fmt.Errorf("job %s: %w", job.ID, err))
			}
		}
		at = jobsCursor{page: next, seen: at.seen}
		if next == "" {
			r.counted(at.seen)
			r.stopAtJob(jobsCursor{})
			break
		}
		r.stopAtJob(at)
	}
	return errors.Join(errs...)
}

func (r *Reaper) counted(open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.many = open
}

// manyJobs is from how many open jobs on each has its turn less often: to look at one whole is to read all of its rows,
// and every process that reaps does so.
const manyJobs = 20

// lookEvery is how often a job is looked at whole.
func (r *Reaper) lookEvery() time.Duration {
	p := r.cfg.Policy
	return max(p.RenewEvery, min(p.RenewEvery*time.Duration(r.many)/manyJobs, p.RingDelay))
}

func (r *Reaper) stopAtJob(at jobsCursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = at
}

// afterJob is the jobs behind the one that was looked at last; all of them once that one has ended.
func afterJob(jobs []pipeline.Job, last pipeline.JobID) []pipeline.Job {
	return jobs[1+slices.IndexFunc(jobs, func(job pipeline.Job) bool { return job.ID == last }):]
}

// lookedRoom is of how many jobs it is known when they were looked at last.
const lookedRoom = 10_000

// turn says that the job is to be looked at now, and remembers that it was.
func (r *Reaper) turn(id pipeline.JobID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Mono()
	if last, looked := r.looked[id]; looked && now-last < r.lookEvery() {
		return false
	}
	if len(r.looked) > lookedRoom {
		clear(r.looked)
	}
	r.looked[id] = now
	return true
}

func (r *Reaper) job(ctx context.Context, seen pipeline.Job, report Report) error {
	s, err := r.standing(ctx, seen.ID)
	if err != nil || s.missing || s.job.Status.Ended() {
		return err
	}
	if s.job.Status == pipeline.JobCancelling || s.job.Expired(r.cfg.Clock.Now()) {
		err = r.closeRows(ctx, seen.ID, report) // rows that cannot be read do not keep their job from ending
	}
	if kept := r.keepOpen(ctx, s.job, report); kept != nil {
		err = errors.Join(err, fmt.Errorf("keep its replies: %w", kept))
	}
	return errors.Join(err, r.settleEnded(ctx, seen.ID), r.cfg.Opener.MaybeFinalize(ctx, seen.ID))
}

// closeRows ends the rows that nobody holds, finalize aside, late-born ones included. The job is read after each page
// of rows: a redrive raises the generation of its row and the job together, so what it reopened is not ended here.
func (r *Reaper) closeRows(ctx context.Context, id pipeline.JobID, report Report) error {
	for cursor := ""; ; {
		rows, next, err := r.cfg.Store.Tasks(ctx, id, cursor)
		if err != nil {
			return err
		}
		s, err := r.standing(ctx, id)
		if err != nil {
			return err
		}
		for _, row := range rows {
			why := s.why(row, r.cfg.Clock.Now())
			if why.None() || (row.Status != pipeline.TaskPending && row.Status != pipeline.TaskParked) {
				continue
			}
			if err := r.close(ctx, row, why); err != nil && !errors.Is(err, pipeline.ErrFenced) {
				return err
			}
			report["closed"]++
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// settleEnded closes what attempts left reserved that have ended, as fully spent: money that nobody will settle any
// more must not look as if others might give it back.
func (r *Reaper) settleEnded(ctx context.Context, id pipeline.JobID) error {
	budget, err := r.cfg.Store.Budget(ctx, id)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the budget: %w", err)
	}
	rows := map[pipeline.TaskID]pipeline.Task{}
	var left []pipeline.Reservation
	for _, open := range budget.Open {
		row, read := rows[open.Task]
		if !read {
			if row, err = r.cfg.Store.Task(ctx, pipeline.Ref{Job: id, ID: open.Task}); err != nil && !errors.Is(err, pipeline.ErrNotFound) {
				return fmt.Errorf("read who reserved: %w", err)
			}
			rows[open.Task] = row
		}
		if row.Status != pipeline.TaskClaimed || row.Generation != open.Generation {
			left = append(left, open)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if _, err := r.cfg.Store.Settle(ctx, id, left...); err != nil {
		return fmt.Errorf("settle what ended attempts left reserved: %w", err)
	}
	return nil
}
