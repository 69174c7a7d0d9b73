package triage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// JobStory is what a job is missing, and why.
type JobStory struct {
	Job         pipeline.Job       `json:"job"`
	Ended       bool               `json:"ended"` // false: what is known so far
	Counts      pipeline.Counts    `json:"counts,omitzero"`
	Clusters    []Cluster          `json:"clusters"`              // largest first
	Tasks       []pipeline.TaskEnd `json:"tasks"`                 // those that did not end done
	Unclaimable []pipeline.Task    `json:"unclaimable,omitempty"` // rung again and again, never claimed
}

// Cluster is the cells, or tasks, that are missing for one reason.
type Cluster struct {
	Kind   pipeline.Kind     `json:"kind"`
	Cause  string            `json:"cause"` // of one of them
	Cells  int               `json:"cells"`
	Tasks  []pipeline.TaskID `json:"tasks"`
	Stages []string          `json:"stages,omitempty"`
	Calls  []string          `json:"calls,omitempty"`
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
	s.Clusters = Clusters(r.Missing)
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
	s.Clusters = Clusters(missing)
	return s, nil
}

// Clusters groups cells by the kind and cause of their failure; causes that differ in numbers only are one.
func Clusters(cells []pipeline.Cell) []Cluster {
	type reason struct {
		kind  pipeline.Kind
		cause string
	}
	index := map[reason]int{}
	var clusters []Cluster
	for _, cell := range cells {
		key := reason{cell.Failure.Kind, withoutNumbers(cell.Failure.Cause)}
		i, known := index[key]
		if !known {
			i = len(clusters)
			index[key] = i
			clusters = append(clusters, Cluster{Kind: cell.Failure.Kind, Cause: cell.Failure.Cause})
		}
		c := &clusters[i]
		c.Cells++
		c.Tasks = once(c.Tasks, pipeline.WorkTask(cell.Chunk))
		c.Calls = once(c.Calls, cell.Call)
		if cell.Failure.Stage != "" {
			c.Stages = once(c.Stages, cell.Failure.Stage)
		}
	}
	slices.SortStableFunc(clusters, func(a, b Cluster) int { return cmp.Compare(b.Cells, a.Cells) })
	return clusters
}

func once[T comparable](all []T, v T) []T {
	if slices.Contains(all, v) {
		return all
	}
	return append(all, v)
}

func withoutNumbers(cause string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, cause)
}
