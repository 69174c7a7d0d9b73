package triage

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// JobStory is what a job is missing, and why.
type JobStory struct {
	Job         pipeline.Job       `json:"job"`
	Ended       bool               `json:"ended"` // false: what is known so far
	Counts      pipeline.Counts    `json:"counts,omitzero"`
	Open        int                `json:"open,omitempty"`        // cells that have not ended
	Setbacks    []pipeline.Setback `json:"setbacks,omitempty"`    // why tasks that have not ended last failed; largest first
	At          pipeline.Instant   `json:"at"`                    // when this was read
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
	s := JobStory{Job: job, Ended: job.Status.Ended(), At: t.cfg.Clock.Now()}
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
		cells, err := t.acceptedOf(ctx, row)
		if err != nil {
			return s, err
		}
		s.Counts.Add(cells...)
		missing = append(missing, withoutAnswer(cells)...)
	}
	s.Gaps, s.Setbacks = pipeline.Gaps(missing), pipeline.HeldBack(ctx, t.cfg.Store, s.Job, rows, s.At)
	return s, t.countOpen(ctx, rows, &s)
}

// countOpen says how many cells have not ended: not those of a task that has. Before the split nobody knows how many
// there will be.
func (t *Triage) countOpen(ctx context.Context, rows []pipeline.Task, s *JobStory) error {
	m, err := pipeline.ReadManifest(ctx, t.cfg.Store, s.Job.ID)
	if errors.Is(err, pipeline.ErrNotFound) || t.cfg.Blobs == nil {
		return nil
	}
	if err != nil {
		return err
	}
	body, err := t.cfg.Blobs.Blob(ctx, s.Job.Fingerprint)
	if err != nil {
		return fmt.Errorf("read the definition: %w", err)
	}
	d, err := pipeline.DecodeDefinition(body)
	if err != nil {
		return err
	}
	c := &s.Counts
	c.Cells = len(m.Chunks) * d.Calls()
	for _, row := range rows {
		if row.ID.Kind() == pipeline.TaskWork && row.Status.Ended() {
			c.NotAsked += d.CallsAfter(row.Accepted)
		}
	}
	s.Open = c.Cells - c.Answered - c.Gated - c.Failed - c.NotAsked
	return nil
}
