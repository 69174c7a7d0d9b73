package submit

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// Cancel stops a job for good: workers see it and stop sending, rows that nobody holds are ended here, each with its
// cancellation, and those of dead workers by the reaper. Cancelling again finishes what an earlier Cancel left undone.
func (s *Submitter) Cancel(ctx context.Context, id pipeline.JobID, reason string) (pipeline.Job, error) {
	if reason == "" {
		reason = "cancelled by a person"
	}
	job, err := s.change(ctx, id, "cancel", func(job pipeline.Job) (pipeline.Job, error) {
		switch job.Status {
		case pipeline.JobCancelling, pipeline.JobCancelled:
		case pipeline.JobPlanned, pipeline.JobRunning, pipeline.JobPaused:
			job.Status, job.CancelledAt = pipeline.JobCancelling, s.cfg.Clock.Now()
			job.Reason = pipeline.Fail(pipeline.Cancelled, "%s", reason)
		default:
			return job, stands(job, "there is nothing left to cancel")
		}
		return job, nil
	})
	if err != nil || job.Status == pipeline.JobCancelled {
		return job, err
	}
	if err := s.closeRows(ctx, job); err != nil {
		return job, fmt.Errorf("cancel job %s: no call starts any more, and the reaper will end its rows: %w", id, err)
	}
	return job, nil
}

func (s *Submitter) closeRows(ctx context.Context, job pipeline.Job) error {
	rows, err := pipeline.AllTasks(ctx, s.cfg.Store, job.ID)
	if err != nil {
		return fmt.Errorf("read its rows: %w", err)
	}
	for _, row := range rows {
		if row.ID.Kind() == pipeline.TaskFinalize {
			continue
		}
		if err := s.closeRow(ctx, job, row); err != nil {
			return err
		}
	}
	if s.cfg.Opener == nil {
		return nil
	}
	return s.cfg.Opener.MaybeFinalize(ctx, job.ID)
}

// closeRow ends a row that nobody holds. A row that somebody holds, or claims meanwhile, is its worker's to end.
func (s *Submitter) closeRow(ctx context.Context, job pipeline.Job, row pipeline.Task) error {
	for range moves {
		if row.Status != pipeline.TaskPending && row.Status != pipeline.TaskParked {
			return nil
		}
		_, err := pipeline.CancelRow(ctx, s.cfg.Store, row, job.Reason, s.cfg.Clock.Now())
		if err == nil {
			return nil
		}
		old, refused := pipeline.Old(err)
		switch {
		case refused && old == nil:
			return nil
		case refused:
			row = *old
		case errors.Is(err, pipeline.ErrBusy), errors.Is(err, pipeline.ErrConflict):
			if err := s.cfg.Clock.Sleep(ctx, s.cfg.Policy.JobPoll); err != nil {
				return err
			}
		default:
			return fmt.Errorf("end %s: %w", row.Ref, err)
		}
	}
	return nil // it keeps moving: the reaper ends it
}
