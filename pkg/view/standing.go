package view

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// Standing is where a job stands.
type Standing struct {
	Job         pipeline.Job                `json:"job"`
	Plan        *pipeline.Plan              `json:"plan,omitempty"`
	Chunks      int                         `json:"chunks"`
	Tasks       map[pipeline.TaskStatus]int `json:"chunks_by_status"`
	Counts      pipeline.Counts             `json:"counts"` // of the cells that have ended, each way apart
	Open        int                         `json:"open"`   // cells that have not ended
	Unread      []pipeline.Unread           `json:"unread,omitempty"`
	Deferrals   int                         `json:"deferrals"`
	Unclaimable []pipeline.TaskID           `json:"unclaimable,omitempty"`
	Setbacks    []pipeline.Setback          `json:"setbacks,omitempty"` // why chunks that have not ended last failed, or were deferred
	Budget      *Budget                     `json:"budget,omitempty"`
	Items       bool                        `json:"-"` // a handler's work, not questions to a model
	Free        bool                        `json:"-"` // no price of it is known
	At          pipeline.Instant            `json:"-"` // when this was read
}

// Budget is a job's money, in billionths of a dollar.
type Budget struct {
	Ceiling  pipeline.Money `json:"ceiling"`
	Spent    pipeline.Money `json:"spent"`
	Reserved pipeline.Money `json:"reserved"`
}

// StandingOf reads where a job stands.
func StandingOf(ctx context.Context, s *wiring.System, job pipeline.Job) (Standing, error) {
	st := Standing{Job: job}
	model, err := Model(ctx, s, job.ID)
	if err != nil {
		return st, err
	}
	st.Items = model.Handler
	manifest, err := pipeline.ReadManifest(ctx, s.Backend.Store, job.ID)
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return st, err
	}
	st.Unread = manifest.Unread
	definition, err := Definition(ctx, s, job)
	if err != nil {
		return st, err
	}
	p, err := ProgressOf(ctx, s, job, definition)
	if err != nil {
		return st, err
	}
	st.Chunks, st.Tasks, st.Deferrals, st.Unclaimable = p.Chunks, p.Status, p.Deferrals, p.Unclaimable
	st.Setbacks, st.Free, st.At = p.Setbacks, definition.Handler != "" && definition.TryCost == 0, p.At
	if st.Counts, err = counts(ctx, s, job, definition); err != nil {
		return st, err
	}
	if job.Result == "" {
		st.Counts.Cells = p.Cells
		st.Open = p.Cells - st.Counts.Answered - st.Counts.Failed - st.Counts.Gated - st.Counts.NotAsked
	}
	if job.Status == pipeline.JobPlanned && p.Chunks > 0 {
		plan, err := s.Submitter.Plan(ctx, job.ID)
		switch {
		case err == nil:
			st.Plan = &plan
		case !errors.Is(err, pipeline.ErrNotFound): // an old one was submitted without a price
			return st, err
		}
	}
	b, err := s.Backend.Store.Budget(ctx, job.ID)
	if errors.Is(err, pipeline.ErrNotFound) {
		return st, nil // nobody has needed any yet
	}
	if err != nil {
		return st, fmt.Errorf("read the budget of job %s: %w", job.ID, err)
	}
	st.Budget = &Budget{b.Ceiling, b.Spent, b.Ceiling - b.Spent - b.Remaining}
	return st, nil
}

// counts tells how cells ended: of the result, or, while there is none, of the stages that were accepted.
func counts(ctx context.Context, s *wiring.System, job pipeline.Job, definition pipeline.Definition) (pipeline.Counts, error) {
	if job.Result != "" {
		r, err := Result(ctx, s, job)
		return r.Counts, err
	}
	var c pipeline.Counts
	rows, err := pipeline.AllTasks(ctx, s.Backend.Store, job.ID)
	if err != nil {
		return c, fmt.Errorf("read the tasks of job %s: %w", job.ID, err)
	}
	for _, row := range rows {
		if row.ID.Kind() != pipeline.TaskWork {
			continue
		}
		for stage := 1; stage <= row.Accepted; stage++ {
			body, err := pipeline.ReadBody(ctx, s.Backend.Store, row, stage)
			if err != nil {
				return c, err
			}
			c.Add(body.Cells...)
		}
		if row.Status.Ended() {
			c.NotAsked += definition.CallsAfter(row.Accepted)
		}
	}
	return c, nil
}
