package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"holdfast/pkg/pipeline"
)

// Submit puts job and split, each only if absent.
func (s *Store) Submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (stands pipeline.Job, created bool, err error) {
	body := text(job)
	if err := cmp.Or(weigh(body), weigh(text(split))); err != nil {
		return pipeline.Job{}, false, named("submit "+string(job.ID), err)
	}
	err = s.write(ctx, func(tx *tx) error {
		put, err := tx.exec(`INSERT INTO jobs (id, body) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, job.ID, body)
		if err != nil {
			return err
		}
		if err := putTask(tx, split); err != nil {
			return err
		}
		stands, err = jobRow(tx, job.ID)
		created = put == 1
		return err
	})
	if err != nil {
		return pipeline.Job{}, false, named("submit "+string(job.ID), err)
	}
	return stands, created, nil
}

// Job is a consistent read.
func (s *Store) Job(ctx context.Context, id pipeline.JobID) (job pipeline.Job, err error) {
	err = s.one(ctx, func(row scanner) (err error) {
		job, err = decodeRow[pipeline.Job](row)
		return err
	}, `SELECT body FROM jobs WHERE id = ?`, id)
	return job, named("job "+string(id), err)
}

const setJob = `UPDATE jobs
SET body = :next
WHERE id = :id
	AND epoch = :epoch
	AND status = :status
	AND COALESCE(body ->> '$.paused_at', 0) = :paused
	AND COALESCE(body ->> '$.deadline', 0) = :deadline`

// SetJob replaces the row if it is still as seen. A row that equals next already is our own
// write, whose answer was lost.
func (s *Store) SetJob(ctx context.Context, seen, next pipeline.Job) (stands pipeline.Job, err error) {
	if err := weigh(text(next)); err != nil {
		return pipeline.Job{}, named("set job "+string(next.ID), err)
	}
	err = s.write(ctx, func(tx *tx) (err error) {
		stands, err = replaceJob(tx, seen, next)
		if stands == next && errors.Is(err, pipeline.ErrFenced) {
			return nil
		}
		return err
	})
	return stands, named("set job "+string(seen.ID), err)
}

// replaceJob returns the row that stands, and ErrFenced where epoch, status, pause or deadline are not those of seen.
func replaceJob(tx *tx, seen, next pipeline.Job) (pipeline.Job, error) {
	changed, err := tx.exec(setJob, sql.Named("next", text(next)),
		sql.Named("id", seen.ID), sql.Named("epoch", seen.Epoch), sql.Named("status", seen.Status),
		sql.Named("paused", seen.PausedAt), sql.Named("deadline", seen.Deadline))
	if err != nil {
		return pipeline.Job{}, err
	}
	if changed == 1 {
		return next, nil
	}
	stands, err := jobRow(tx, seen.ID)
	if err != nil {
		return pipeline.Job{}, err
	}
	return stands, fmt.Errorf("%w: the job is %s at epoch %d", pipeline.ErrFenced, stands.Status, stands.Epoch)
}

// jobRow reads the row inside a transaction.
func jobRow(tx *tx, id pipeline.JobID) (pipeline.Job, error) {
	job, err := decodeRow[pipeline.Job](tx.row(`SELECT body FROM jobs WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return pipeline.Job{}, pipeline.ErrNotFound
	}
	return job, err
}

// Jobs lists a tenant's jobs, newest first.
func (s *Store) Jobs(ctx context.Context, tenant, cursor string, limit int) ([]pipeline.Job, string, error) {
	at, err := parted(cursor, 2)
	if err != nil {
		return nil, "", named("jobs", err)
	}
	query, args := `SELECT body FROM jobs WHERE tenant = ? ORDER BY created_at DESC, id`, []any{tenant}
	if cursor != "" {
		created, err := strconv.ParseInt(at[0], 10, 64)
		if err != nil {
			return nil, "", named("jobs", err)
		}
		query = `SELECT body FROM jobs WHERE tenant = ? AND created_at <= ? AND (created_at < ? OR id > ?) ORDER BY created_at DESC, id`
		args = append(args, created, created, at[1])
	}
	jobs, more, err := s.jobPage(ctx, limit, query, args...)
	if !more {
		return jobs, "", named("jobs", err)
	}
	last := jobs[len(jobs)-1]
	return jobs, joined(strconv.FormatInt(int64(last.CreatedAt), 10), string(last.ID)), nil
}

// OpenJobs is one page of the jobs that have not ended, whoever's they are.
func (s *Store) OpenJobs(ctx context.Context, cursor string) ([]pipeline.Job, string, error) {
	jobs, more, err := s.jobPage(ctx, 0, `SELECT body FROM jobs
WHERE id > ?
	AND status NOT IN ('completed', 'partial', 'failed', 'cancelled')
ORDER BY id`, cursor)
	if !more {
		return jobs, "", named("open jobs", err)
	}
	return jobs, string(jobs[len(jobs)-1].ID), nil
}

// jobPage reads jobs until limit (0 = none) or a page is full; more says that there are others.
func (s *Store) jobPage(ctx context.Context, limit int, query string, args ...any) (jobs []pipeline.Job, more bool, err error) {
	var size page
	err = s.query(ctx, func(row scanner) error {
		job, err := decodeRow[pipeline.Job](row)
		if err != nil {
			return err
		}
		if (limit > 0 && len(jobs) == limit) || !size.takes(len(text(job))) {
			more = true
			return errEnough
		}
		jobs = append(jobs, job)
		return nil
	}, query, args...)
	if err != nil {
		return nil, false, err
	}
	return jobs, more, nil
}
