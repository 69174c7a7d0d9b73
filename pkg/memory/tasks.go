package memory

import (
	"context"
	"fmt"
	"slices"

	"holdfast/pkg/pipeline"
)

// row is the stored row; the caller may keep it.
func (s *Store) row(ref pipeline.Ref) (pipeline.Task, bool) {
	row, exists := s.tasks[ref.Job][ref.ID]
	row.Bodies = slices.Clone(row.Bodies)
	return row, exists
}

// put stores a row and keeps the due index in step with it.
func (s *Store) put(row pipeline.Task) error {
	if err := fits("task "+row.Ref.String(), encoded(row)); err != nil {
		return err
	}
	row.Bodies = slices.Clone(row.Bodies)
	if s.tasks[row.Job] == nil {
		s.tasks[row.Job] = map[pipeline.TaskID]pipeline.Task{}
	}
	s.tasks[row.Job][row.ID] = row
	if row.Listed() {
		s.listed[row.DueShard()][row.Ref] = true
	} else {
		delete(s.listed[row.DueShard()], row.Ref)
	}
	return nil
}

// change is one compare-and-swap: the row as it stands must exist and satisfy the condition; then it is set.
func (s *Store) change(ctx context.Context, op string, ref pipeline.Ref, condition func(row pipeline.Task) bool, set func(row *pipeline.Task)) (pipeline.Task, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Task{}, err
	}
	defer s.mu.Unlock()
	row, exists := s.row(ref)
	if !exists {
		return pipeline.Task{}, &pipeline.ConditionError{Op: op, Ref: ref}
	}
	if !condition(row) {
		return pipeline.Task{}, &pipeline.ConditionError{Op: op, Ref: ref, Old: &row}
	}
	set(&row)
	if err := s.put(row); err != nil {
		return pipeline.Task{}, err
	}
	row.Bodies = slices.Clone(row.Bodies)
	return row, nil
}

// PutTasks puts each row only if absent.
func (s *Store) PutTasks(ctx context.Context, rows []pipeline.Task) ([]pipeline.Task, error) {
	if len(rows) > pipeline.MaxWrite {
		return nil, fmt.Errorf("put %d tasks: a batch has at most %d", len(rows), pipeline.MaxWrite)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var unprocessed []pipeline.Task
	for i, row := range rows {
		if s.Unprocessed != nil && s.Unprocessed("PutTasks", i) {
			unprocessed = append(unprocessed, row)
			continue
		}
		if _, exists := s.row(row.Ref); exists {
			continue
		}
		if err := s.put(row); err != nil {
			return rows[i:], err
		}
	}
	return unprocessed, nil
}

// Task reads the row.
func (s *Store) Task(ctx context.Context, ref pipeline.Ref) (pipeline.Task, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Task{}, err
	}
	defer s.mu.Unlock()
	row, exists := s.row(ref)
	if !exists {
		return pipeline.Task{}, fmt.Errorf("task %s: %w", ref, pipeline.ErrNotFound)
	}
	return row, nil
}

// Tasks is one page of a job's rows in order of their ids.
func (s *Store) Tasks(ctx context.Context, job pipeline.JobID, cursor string) ([]pipeline.Task, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	id := func(t pipeline.Task) string { return string(t.ID) }
	rows, next := turn(sortedBy(s.tasks[job], id), cursor, s.PageBytes, id, sizeOf[pipeline.Task])
	for i := range rows {
		rows[i].Bodies = slices.Clone(rows[i].Bodies)
	}
	return rows, next, nil
}

// Claim takes a pending row. The attempt is counted here, before the work.
func (s *Store) Claim(ctx context.Context, w pipeline.ClaimWrite) (pipeline.Task, error) {
	return s.change(ctx, "claim", w.Ref, func(row pipeline.Task) bool {
		return row.Status == pipeline.TaskPending &&
			row.ReadyAt <= w.Now &&
			row.Generation == w.Seen &&
			row.Attempts < w.MaxAttempts &&
			(row.Losses < pipeline.AloneLosses || w.Alone)
	}, func(row *pipeline.Task) {
		row.Status = pipeline.TaskClaimed
		row.ClaimedBy = w.Worker
		row.ClaimID = w.ClaimID
		row.ClaimedAt = w.Now
		row.ExpiresAt = w.Expires
		row.DueAt = w.Due
		row.Generation = w.Seen + 1
		row.Attempts++
		row.Rings = 0
		row.Answers = 0
	})
}

// mine is the fence: it holds of the row only while the claim that the write is made under lasts.
func mine(row pipeline.Task, f pipeline.Fence) bool {
	return row.Generation == f.Generation &&
		row.ClaimID == f.ClaimID &&
		row.Status == pipeline.TaskClaimed
}

// Renew keeps a claim. A late copy never shortens it.
func (s *Store) Renew(ctx context.Context, w pipeline.RenewWrite) (pipeline.Task, error) {
	return s.change(ctx, "renew", w.Ref, func(row pipeline.Task) bool {
		return mine(row, w.Fence) &&
			row.ExpiresAt < w.Expires &&
			row.Allowed <= w.Allowed &&
			w.Allowed <= row.MaxTries
	}, func(row *pipeline.Task) {
		row.ExpiresAt = w.Expires
		row.Stage = w.Stage
		row.StageAt = w.StageAt
		row.Answers = w.Answers
		row.Allowed = w.Allowed
	})
}

// Checkpoint accepts a stage, with this generation's body.
func (s *Store) Checkpoint(ctx context.Context, w pipeline.CheckpointWrite) (pipeline.Task, error) {
	return s.change(ctx, "checkpoint", w.Ref, func(row pipeline.Task) bool {
		return mine(row, w.Fence) &&
			row.Accepted == w.Stage-1 &&
			row.Allowed <= w.Allowed &&
			w.Allowed <= row.MaxTries
	}, func(row *pipeline.Task) {
		row.Accepted = w.Stage
		row.Bodies = append(bodiesOf(*row, w.Stage-1), w.Generation)
		row.Attempts = 1
		row.Losses = 0
		row.Allowed = w.Allowed
	})
}

// bodiesOf is the bodies of exactly n stages, whatever an older row has.
func bodiesOf(row pipeline.Task, n int) []int64 {
	bodies := make([]int64, n)
	copy(bodies, row.Bodies)
	return bodies
}

// End closes a claim as the verdict says.
func (s *Store) End(ctx context.Context, w pipeline.EndWrite) (pipeline.Task, error) {
	return s.change(ctx, "end", w.Ref, func(row pipeline.Task) bool {
		return mine(row, w.Fence) &&
			row.Accepted == w.Accepted &&
			w.Allowed <= row.Allowed
	}, func(row *pipeline.Task) {
		become(row, w.Verdict)
		row.Allowed = w.Allowed
		row.ReadyAt = w.ReadyAt
		row.DueAt = w.DueAt
		row.EndedBy = w.EndedBy
		row.Reason = w.Reason
	})
}

// become sets what a verdict is about: all of it, none added to.
func become(row *pipeline.Task, v pipeline.Verdict) {
	row.Status = v.Status
	row.Attempts = v.Attempts
	row.Deferrals = v.Deferrals
	row.Losses = v.Losses
}

// Redrive gives a task attempts back and reopens its job, both or neither.
func (s *Store) Redrive(ctx context.Context, w pipeline.RedriveWrite) (pipeline.Task, pipeline.Job, error) {
	if err := fits("job "+string(w.Reopened.ID), encoded(w.Reopened)); err != nil {
		return pipeline.Task{}, pipeline.Job{}, err
	}
	if err := s.enter(ctx); err != nil {
		return pipeline.Task{}, pipeline.Job{}, err
	}
	defer s.mu.Unlock()
	row, exists := s.row(w.Task.Ref)
	job, hasJob := s.jobs[w.Job.ID]
	if !exists {
		return pipeline.Task{}, job, &pipeline.ConditionError{Op: "redrive", Ref: w.Task.Ref}
	}
	if !hasJob || !redrivable(row, w.Task) || !sameJob(job, w.Job) {
		return pipeline.Task{}, job, &pipeline.ConditionError{Op: "redrive", Ref: w.Task.Ref, Old: &row}
	}
	reopen(&row, w)
	if err := s.put(row); err != nil {
		return pipeline.Task{}, pipeline.Job{}, err
	}
	s.jobs[w.Job.ID] = w.Reopened
	return row, w.Reopened, nil
}

func redrivable(row, seen pipeline.Task) bool {
	return row.Status == seen.Status &&
		row.Generation == seen.Generation &&
		row.Status.Ended()
}

func reopen(row *pipeline.Task, w pipeline.RedriveWrite) {
	row.Status = pipeline.TaskPending
	row.Generation++
	row.Attempts = 0
	row.Deferrals = 0
	row.Losses = 0
	row.Rings = 0
	row.Accepted = w.Accepted
	row.Bodies = bodiesOf(*row, w.Accepted)
	row.MaxTries = w.MaxTries
	row.ReadyAt = w.Now
	row.DueAt = w.Now
	row.Buried = false
}
