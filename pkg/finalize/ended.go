package finalize

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// State is a job's tasks as one reading found them.
type State struct {
	Split    pipeline.Task
	Manifest pipeline.Manifest
	Known    bool            // there is a manifest
	Work     []pipeline.Task // Work[n] is the row of chunk n; its ID is empty where there is none
	Finalize map[pipeline.TaskID]pipeline.Task
}

// AllEnded says that the split has ended, the manifest is known and each of its rows has ended: read from the rows
// themselves, never from an index or a counter.
func AllEnded(ctx context.Context, tasks pipeline.Tasks, items pipeline.Items, job pipeline.JobID) (State, bool, error) {
	rows, err := pipeline.AllTasks(ctx, tasks, job)
	if err != nil {
		return State{}, false, fmt.Errorf("read the rows of job %s: %w", job, err)
	}
	s := State{Finalize: map[pipeline.TaskID]pipeline.Task{}}
	var work []pipeline.Task
	for _, row := range rows {
		switch row.ID.Kind() {
		case pipeline.TaskSplit:
			s.Split = row
		case pipeline.TaskFinalize:
			s.Finalize[row.ID] = row
		default:
			work = append(work, row)
		}
	}
	if !s.Split.Status.Ended() {
		return s, false, nil
	}
	body, err := items.Item(ctx, job, pipeline.ManifestKey)
	if errors.Is(err, pipeline.ErrNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("read the manifest of job %s: %w", job, err)
	}
	if s.Manifest, err = pipeline.DecodeManifest(body); err != nil {
		return s, false, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	s.Known = true
	s.Work = make([]pipeline.Task, len(s.Manifest.Chunks))
	for _, row := range work {
		if n := row.ID.Number(); n >= 0 && n < len(s.Work) {
			s.Work[n] = row
		}
	}
	return s, s.over(), nil
}

func (s State) over() bool {
	for _, row := range s.Work {
		if !row.Status.Ended() {
			return false
		}
	}
	return true
}

// absent is how many chunks of the manifest have no row.
func (s State) absent() int {
	absent := 0
	for _, row := range s.Work {
		if row.ID == "" {
			absent++
		}
	}
	return absent
}

// Waiting says what has not ended, for a person.
func (s State) Waiting() string {
	if !s.Split.Status.Ended() {
		return fmt.Sprintf("the split is %s", s.Split.Status)
	}
	if !s.Known {
		return "there is no manifest yet"
	}
	open := 0
	for _, row := range s.Work {
		if row.ID != "" && !row.Status.Ended() {
			open++
		}
	}
	return fmt.Sprintf("of %d chunks %d are still open and %d have no row", len(s.Work), open, s.absent())
}
