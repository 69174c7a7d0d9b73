package view

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// Progress is how far a job is, from its rows.
type Progress struct {
	Job         pipeline.Job
	Chunks      int
	Ended       int // chunks
	Cells       int // of the plan
	Done        int // cells of accepted stages
	Claimed     int
	Deferrals   int
	Status      map[pipeline.TaskStatus]int
	Unclaimable []pipeline.TaskID
	Setbacks    []pipeline.Setback
	Running     map[pipeline.TaskID]int // accepted stage of each chunk that has not ended
	At          pipeline.Instant        // when this was read
}

// ProgressOf reads a job's rows. definition is the job's: it never changes, so whoever looks again and again reads it
// once.
func ProgressOf(ctx context.Context, s *wiring.System, job pipeline.Job, definition pipeline.Definition) (Progress, error) {
	p := Progress{Job: job, Status: map[pipeline.TaskStatus]int{}, Running: map[pipeline.TaskID]int{}, At: s.Clock().Now()}
	rows, err := pipeline.AllTasks(ctx, s.Backend.Store, job.ID)
	if err != nil {
		return p, fmt.Errorf("read the tasks of job %s: %w", job.ID, err)
	}
	p.Setbacks = pipeline.HeldBack(ctx, s.Backend.Store, job, rows, p.At)
	for _, row := range rows {
		if row.Unclaimable(s.Policy()) {
			p.Unclaimable = append(p.Unclaimable, row.ID)
		}
		if row.ID.Kind() != pipeline.TaskWork {
			continue
		}
		p.Chunks++
		p.Status[row.Status]++
		p.Deferrals += row.Deferrals
		for stage := range row.Accepted {
			p.Done += len(definition.Stages[stage].Calls)
		}
		switch {
		case row.Status.Ended():
			p.Ended++
		default:
			p.Running[row.ID] = row.Accepted
		}
		if row.Status == pipeline.TaskClaimed {
			p.Claimed++
		}
	}
	p.Cells = p.Chunks * definition.Calls()
	return p, nil
}
