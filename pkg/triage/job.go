package triage

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
)

// JobStory is what a job is missing, and why.
type JobStory struct {
	Job         pipeline.Job       `json:"job"`
	Ended       bool               `json:"ended"` // false: what is known so far
	Counts      pipeline.Counts    `json:"counts,omitzero"`
	Gaps        []pipeline.Gap     `json:"gaps"`                  // what is missing, by reason; largest first
	Tasks       []pipeline.TaskEnd `json:"tasks"`                 // those that did not end done
	Unclaimable []pipeline.Task    `json:"unclaimable,omitempty"` // rung again and again, never claimed
}

// WhyJob is what a job is missing and why, the reasons grouped by kind and cause.
func (t *Triage) WhyJob(ctx context.Context, id pipeline.JobID) (JobStory, error) {
	story, err := t.whyJob(ctx, id)
	if err != nil {
		return story, fmt.Errorf("why job %s: %w", id, err)
	}
	return story, nil
}

func (t *Triage) whyJob(ctx context.Context, id pipeline.JobID) (JobStory, error) {
	job, err := t.cfg.Store.Job(ctx, id)
	if err != nil {
		return JobStory{}, err
	}
	s := JobStory{Job: job, Ended: job.Status.Ended()}
	if job.Result != "" {
		return t.fromResult(ctx, s)
	}
	return t.fromRows(ctx, s)
}

func (t *Triage) fromResult(ctx context.Context, s JobStory) (JobStory, error) {
	body, err := t.cfg.Blobs.Blob(ctx, s.Job.Result)
	if err != nil {
		return s, fmt.Errorf("read the result: %w", err)
	}
	r, err := pipeline.Decode[pipeline.Result](body, "result")
	if err != nil {
		return s, err
	}
	s.Counts = r.Counts
	s.Gaps = pipeline.Gaps(r.Missing)
	for _, end := range r.Tasks {
		if end.Status != pipeline.TaskDone {
			s.Tasks = append(s.Tasks, end)
		}
	}
	return s, nil
}

// fromRows is what the rows and the accepted stages of a job say that has no result: it goes on, or its finalize was
// given up.
func (t *Triage) fromRows(ctx context.Context, s JobStory) (JobStory, error) {
	rows, err := pipeline.AllTasks(ctx, t.cfg.Store, s.Job.ID)
	if err != nil {
		return s, err
	}
	var missing []pipeline.Cell
	for _, row := range rows {
		if row.Status == pipeline.TaskAbandoned || row.Status == pipeline.TaskCancelled {
			s.Tasks = append(s.Tasks, pipeline.TaskEnd{Task: row.ID, Status: row.Status, Accepted: row.Accepted, Stages: row.Stages, Reason: row.Reason})
		}
		if row.Unclaimable(t.cfg.Policy) {
			s.Unclaimable = append(s.Unclaimable, row)
		}
		cells, err := t.missingOf(ctx, row)
		if err != nil {
			return s, err
		}
		missing = append(missing, cells...)
	}
	s.Gaps = pipeline.Gaps(missing)
	return s, nil
}
