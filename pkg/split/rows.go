package split

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// rows are the work tasks of n chunks, born parked while the job is planned. The bell is rung right after they are put;
// the reaper looks at them a little later, should it get lost.
func (s *Splitter) rows(job pipeline.Job, d pipeline.Definition, n int) []pipeline.Task {
	status, now := pipeline.TaskPending, s.cfg.Clock.Now()
	if job.Status == pipeline.JobPlanned {
		status = pipeline.TaskParked
	}
	rows := make([]pipeline.Task, n)
	for i := range rows {
		rows[i] = pipeline.Task{
			Ref:      pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(i)},
			Tenant:   job.Tenant,
			Status:   status,
			Stages:   len(d.Stages),
			MaxTries: job.TriesPerCell(s.cfg.Policy) * d.Calls(),
			ReadyAt:  now,
			DueAt:    now.Add(s.cfg.Policy.RenewEvery),
		}
	}
	return rows
}

// put puts the rows that are not there yet. A row of an attempt before this one stays as it is.
func (s *Splitter) put(ctx context.Context, a pipeline.Attempt, rows []pipeline.Task) error {
	if err := a.Fence(ctx); err != nil {
		return fmt.Errorf("before the rows: %w", err)
	}
	return pipeline.PutRows(ctx, s.cfg.Tasks, s.cfg.Clock, rows, a.Progress)
}

// ring sends the bells of rows that may be claimed.
func (s *Splitter) ring(ctx context.Context, rows []pipeline.Task) {
	if len(rows) == 0 || rows[0].Status != pipeline.TaskPending {
		return
	}
	_ = s.cfg.Ring(ctx, rows...) // not sent: the rows are due, and the reaper rings them
}

// problem is an error that knows its failure.
type problem struct{ pipeline.Failure }

func (p *problem) Error() string { return p.Failure.String() }

// invalid is a document or definition that no attempt can split.
func invalid(doing string, err error) error {
	return &problem{pipeline.Fail(pipeline.Invalid, "%s: %v", doing, err)}
}

// failure is what an error comes to. What is no problem of the document is a stop, or the store's.
func failure(ctx context.Context, err error, job pipeline.Job) pipeline.Failure {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p.Failure
	case ctx.Err() != nil:
		return pipeline.StopFailure(context.Cause(ctx), job)
	}
	return pipeline.StopFailure(err, job)
}
