package submit

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// ErrStands says that the job's status does not allow what was asked.
var ErrStands = errors.New("not possible")

// moves bounds how often a change of a job is decided anew because the row moved or the store was busy.
const moves = 10

// Start lets a planned job run: the plan is fixed, the budget opened at its ceiling, the deadline set, and its parked
// rows rung. On a running job it finishes what an earlier Start left undone.
func (s *Submitter) Start(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	return s.begin(ctx, id, "start", func(job pipeline.Job) (pipeline.Job, error) {
		switch job.Status {
		case pipeline.JobRunning:
		case pipeline.JobPlanned:
			if _, err := s.OpenBudget(ctx, id); err != nil {
				return job, err
			}
			now := s.cfg.Clock.Now()
			job.Status, job.StartedAt, job.Deadline = pipeline.JobRunning, now, now.Add(s.cfg.Policy.JobDeadline)
		default:
			return job, stands(job, "only a planned job can be started")
		}
		return job, nil
	})
}

// Pause stops the spending of a running job until Resume. Workers park what they hold.
func (s *Submitter) Pause(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	return s.change(ctx, id, "pause", func(job pipeline.Job) (pipeline.Job, error) {
		switch job.Status {
		case pipeline.JobPaused:
		case pipeline.JobRunning:
			job.Status, job.PausedAt = pipeline.JobPaused, s.cfg.Clock.Now()
		default:
			return job, stands(job, "only a running job can be paused")
		}
		return job, nil
	})
}

// Resume lets a paused job go on. The time it was paused for is no time towards its deadline.
func (s *Submitter) Resume(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	return s.begin(ctx, id, "resume", func(job pipeline.Job) (pipeline.Job, error) {
		switch job.Status {
		case pipeline.JobRunning:
		case pipeline.JobPaused:
			if job.Deadline != 0 {
				job.Deadline = job.Deadline.Add(max(0, s.cfg.Clock.Now().Sub(job.PausedAt)))
			}
			job.Status, job.PausedAt = pipeline.JobRunning, 0
		default:
			return job, stands(job, "only a paused job can be resumed")
		}
		return job, nil
	})
}

// begin makes a job run and rings the rows that were parked for it.
func (s *Submitter) begin(ctx context.Context, id pipeline.JobID, op string, decide func(pipeline.Job) (pipeline.Job, error)) (pipeline.Job, error) {
	job, err := s.change(ctx, id, op, decide)
	if err != nil {
		return job, err
	}
	if err := s.unpark(ctx, id); err != nil {
		return job, fmt.Errorf("%s job %s: it runs, and the reaper will ring its rows: %w", op, id, err)
	}
	return job, nil
}

func (s *Submitter) unpark(ctx context.Context, id pipeline.JobID) error {
	rows, err := pipeline.AllTasks(ctx, s.cfg.Store, id)
	if err != nil {
		return fmt.Errorf("read its rows: %w", err)
	}
	var ready []pipeline.Task
	for _, row := range rows {
		if row.Status != pipeline.TaskParked {
			continue
		}
		row, unparked, err := s.unparkRow(ctx, row)
		if err != nil {
			return fmt.Errorf("unpark: %w", err)
		}
		if unparked {
			ready = append(ready, row)
		}
	}
	_ = s.cfg.Queues.Ring(ctx, ready...) // lost: the rows are due, and the reaper rings
	return nil
}

// unparkRow unparks a row as long as it is parked: the reaper may only have put it off meanwhile.
func (s *Submitter) unparkRow(ctx context.Context, row pipeline.Task) (pipeline.Task, bool, error) {
	for range moves {
		pending, err := s.cfg.Store.Unpark(ctx, row, s.cfg.Clock.Now())
		old, refused := pipeline.Old(err)
		switch {
		case err == nil:
			return pending, true, nil
		case !refused:
			return row, false, err
		case old == nil || old.Status != pipeline.TaskParked:
			return row, false, nil // the reaper was faster
		}
		row = *old
	}
	return row, false, nil
}

// change decides what becomes of the job as it stands, and writes that on condition that it still stands so. A
// decision that changes nothing is no write.
func (s *Submitter) change(ctx context.Context, id pipeline.JobID, op string, decide func(pipeline.Job) (pipeline.Job, error)) (pipeline.Job, error) {
	var last error
	for range moves {
		seen, err := s.cfg.Store.Job(ctx, id)
		if err != nil {
			return pipeline.Job{}, fmt.Errorf("%s job %s: %w", op, id, err)
		}
		next, err := decide(seen)
		if err != nil {
			return seen, fmt.Errorf("%s job %s: %w", op, id, err)
		}
		if next == seen {
			return seen, nil
		}
		stands, err := s.cfg.Store.SetJob(ctx, seen, next)
		if err == nil {
			return stands, nil
		}
		if !errors.Is(err, pipeline.ErrFenced) && !errors.Is(err, pipeline.ErrConflict) && !errors.Is(err, pipeline.ErrBusy) {
			return seen, fmt.Errorf("%s job %s: %w", op, id, err)
		}
		last = err
		if err := s.pauseIfBusy(ctx, err); err != nil {
			return seen, fmt.Errorf("%s job %s: %w", op, id, err)
		}
	}
	return pipeline.Job{}, fmt.Errorf("%s job %s: the row kept moving, try again: %w", op, id, last)
}

func (s *Submitter) pauseIfBusy(ctx context.Context, err error) error {
	if errors.Is(err, pipeline.ErrFenced) {
		return nil
	}
	return s.cfg.Clock.Sleep(ctx, s.cfg.Policy.JobPoll)
}

func stands(job pipeline.Job, why string) error {
	return fmt.Errorf("%w: it is %s; %s", ErrStands, job.Status, why)
}
