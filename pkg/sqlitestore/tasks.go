package sqlitestore

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
)

// PutTasks puts each row only if absent, all of them in one transaction: here none is ever left over.
func (s *Store) PutTasks(ctx context.Context, rows []pipeline.Task) (unprocessed []pipeline.Task, err error) {
	if len(rows) > pipeline.MaxWrite {
		return nil, fmt.Errorf("put %d tasks: at most %d at once", len(rows), pipeline.MaxWrite)
	}
	for _, row := range rows {
		if err := weigh(text(row)); err != nil {
			return rows, named("put task "+row.Ref.String(), err)
		}
	}
	err = s.write(ctx, func(tx *tx) error {
		for _, row := range rows {
			if err := putTask(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return rows, named(fmt.Sprintf("put %d tasks", len(rows)), err)
	}
	return nil, nil
}

// Task is a consistent read.
func (s *Store) Task(ctx context.Context, ref pipeline.Ref) (task pipeline.Task, err error) {
	err = s.one(ctx, func(row scanner) (err error) {
		task, err = scanTask(row)
		return err
	}, `SELECT `+taskRow+` FROM tasks WHERE job = ? AND task = ?`, ref.Job, ref.ID)
	return task, named("task "+ref.String(), err)
}

// Tasks is one page of a job's rows in order of their ids.
func (s *Store) Tasks(ctx context.Context, job pipeline.JobID, cursor string) ([]pipeline.Task, string, error) {
	rows, more, err := s.taskPage(ctx, `SELECT `+taskRow+` FROM tasks
WHERE job = ?
	AND task > ?
ORDER BY task`, job, cursor)
	if !more {
		return rows, "", named("tasks of "+string(job), err)
	}
	return rows, string(rows[len(rows)-1].ID), nil
}

// taskPage reads rows until a page is full; more says that there are others.
func (s *Store) taskPage(ctx context.Context, query string, args ...any) (rows []pipeline.Task, more bool, err error) {
	var size page
	err = s.query(ctx, func(row scanner) error {
		task, err := scanTask(row)
		if err != nil {
			return err
		}
		if !size.takes(len(text(task))) {
			more = true
			return errEnough
		}
		rows = append(rows, task)
		return nil
	}, query, args...)
	if err != nil {
		return nil, false, err
	}
	return rows, more, nil
}
