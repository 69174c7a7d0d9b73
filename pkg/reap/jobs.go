package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// openJobs looks at every job that has not ended: rows of cancelled or late ones are ended whatever their time, and a
// finalize that nobody opened is opened. A job is looked at whole at most every RenewEvery.
func (r *Reaper) openJobs(ctx context.Context, end time.Duration, report Report) error {
	var errs []error
	for cursor := ""; r.cfg.Clock.Mono() < end; {
		jobs, next, err := r.cfg.Store.OpenJobs(ctx, cursor)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if !r.turn(job.ID) {
				continue
			}
			if err := r.job(ctx, job, report); err != nil {
				errs = append(errs, fmt.Errorf("job %s: %w", job.ID, err))
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return errors.Join(errs...)
}

func (r *Reaper) turn(id pipeline.JobID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Now()
	if last, looked := r.looked[id]; looked && now.Sub(last) < r.cfg.Policy.RenewEvery {
		return false
	}
	if len(r.looked) > 10_000 {
		clear(r.looked)
	}
	r.looked[id] = now
	return true
}

func (r *Reaper) job(ctx context.Context, seen pipeline.Job, report Report) error {
	s, err := r.standing(ctx, seen.ID, map[pipeline.JobID]standing{})
	if err != nil || s.missing || s.job.Status.Ended() {
		return err
	}
	now := r.cfg.Clock.Now()
	if s.job.Status == pipeline.JobCancelling || s.job.Expired(now) {
		if err := r.closeRows(ctx, s, now, report); err != nil {
			return err
		}
	}
	return r.cfg.Opener.MaybeFinalize(ctx, seen.ID)
}

// closeRows ends the rows that nobody holds, finalize aside, late-born ones included.
func (r *Reaper) closeRows(ctx context.Context, s standing, now pipeline.Instant, report Report) error {
	for cursor := ""; ; {
		rows, next, err := r.cfg.Store.Tasks(ctx, s.job.ID, cursor)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Status != pipeline.TaskPending && row.Status != pipeline.TaskParked {
				continue
			}
			why := s.why(row, now)
			if why.None() {
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
