package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"holdfast/pkg/pipeline"
)

const redrive = `UPDATE tasks
SET status = 'pending',
	generation = COALESCE(generation, 0) + 1,
	attempts = 0,
	deferrals = 0,
	losses = 0,
	rings = 0,
	accepted = :accepted,
	bodies = ` + keptBodies + `,
	max_tries = :max_tries,
	ready_at = :now,
	due_at = :now,
	buried = 0
WHERE job = :job AND task = :task
	AND status IN ('abandoned', 'done', 'cancelled')
	AND status = :status
	AND COALESCE(generation, 0) = :generation`

// Redrive changes task and job together, or neither. Where it is refused it returns the job that stands.
func (s *Store) Redrive(ctx context.Context, w pipeline.RedriveWrite) (task pipeline.Task, job pipeline.Job, err error) {
	what := "redrive " + w.Task.String()
	if err := weigh(text(w.Reopened)); err != nil {
		return pipeline.Task{}, pipeline.Job{}, named(what, err)
	}
	err = s.writeParts(ctx, func(tx *tx) (err error) {
		job, err = replaceJob(tx, w.Job, w.Reopened)
		if errors.Is(err, pipeline.ErrFenced) || errors.Is(err, pipeline.ErrNotFound) {
			return refusal(tx, "redrive", w.Task.Ref)
		}
		if err != nil {
			return err
		}
		task, err = changeTask(tx, "redrive", w.Task.Ref, redrive,
			sql.Named("status", w.Task.Status),
			sql.Named("generation", w.Task.Generation),
			sql.Named("accepted", w.Accepted),
			sql.Named("kept", places(w.Accepted)),
			sql.Named("max_tries", w.MaxTries),
			sql.Named("now", w.Now))
		if err != nil {
			job = w.Job // what was written is taken back
		}
		return err
	})
	return task, job, named(what, err)
}
