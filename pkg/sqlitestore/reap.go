package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"holdfast/pkg/pipeline"
)

const due = `SELECT ` + taskRow + ` FROM tasks
WHERE shard = ?
	AND due_at > 0
	AND due_at <= ?
	AND (due_at, job, task) > (?, ?, ?)
	AND ` + listed + `
ORDER BY due_at, job, task`

// Due is one page of the listed rows of a shard, most overdue first. It does not lag.
func (s *Store) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	if shard < 0 || shard >= pipeline.DueShards {
		return nil, "", fmt.Errorf("due shard %d: there are %d", shard, pipeline.DueShards)
	}
	at, err := parted(cursor, 3)
	if err != nil {
		return nil, "", named("due", err)
	}
	from, _ := strconv.ParseInt(at[0], 10, 64) // 0 for the first page
	rows, more, err := s.taskPage(ctx, due, shard, now, from, at[1], at[2])
	if !more {
		return rows, "", named("due", err)
	}
	last := rows[len(rows)-1]
	return rows, joined(strconv.FormatInt(int64(last.DueAt), 10), string(last.Job), string(last.ID)), nil
}

const expire = `UPDATE tasks
SET status = :status,
	attempts = :attempts,
	deferrals = :deferrals,
	losses = :losses,
	ready_at = :ready,
	due_at = :due,
	ended_by = '` + pipeline.ExpiredBy + `',
	reason = :reason
WHERE job = :job AND task = :task
	AND status = 'claimed'
	AND generation = :generation
	AND COALESCE(accepted, 0) = :accepted
	AND (
		COALESCE(expires_at, 0) < :lapsed
		OR (
			:exited <> ''
			AND claimed_by = :exited
		)
	)`

// Expire ends somebody else's claim.
func (s *Store) Expire(ctx context.Context, w pipeline.ExpireWrite) (pipeline.Task, error) {
	return s.change(ctx, "expire", w.Seen.Ref, expire,
		sql.Named("generation", w.Seen.Generation),
		sql.Named("accepted", w.Seen.Accepted),
		sql.Named("lapsed", w.Now.Add(-w.MaxSkew)),
		sql.Named("exited", w.Exited),
		sql.Named("status", w.Verdict.Status),
		sql.Named("attempts", w.Verdict.Attempts),
		sql.Named("deferrals", w.Verdict.Deferrals),
		sql.Named("losses", w.Verdict.Losses),
		sql.Named("ready", w.ReadyAt),
		sql.Named("due", w.DueAt),
		sql.Named("reason", reasonText(w.Reason)))
}

// seen is what every write of the reaper but Expire is conditional on.
func seen(t pipeline.Task) []any {
	return []any{
		sql.Named("status", t.Status),
		sql.Named("generation", t.Generation),
		sql.Named("rings", t.Rings),
		sql.Named("due_seen", t.DueAt),
	}
}

const ring = `UPDATE tasks
SET ring = COALESCE(ring, 0) + 1,
	rings = :count,
	due_at = :due
WHERE job = :job AND task = :task
	AND status = 'pending'
	AND COALESCE(generation, 0) = :generation
	AND COALESCE(rings, 0) = :rings
	AND COALESCE(due_at, 0) = :due_seen`

// Ring numbers and counts the message that is about to be sent.
func (s *Store) Ring(ctx context.Context, w pipeline.RingWrite) (pipeline.Task, error) {
	return s.change(ctx, "ring", w.Seen.Ref, ring,
		append(seen(w.Seen), sql.Named("count", w.Count), sql.Named("due", w.Due))...)
}

const postpone = `UPDATE tasks
SET due_at = :due
WHERE job = :job AND task = :task
	AND status = :status
	AND COALESCE(generation, 0) = :generation
	AND COALESCE(rings, 0) = :rings
	AND COALESCE(due_at, 0) = :due_seen`

// Postpone moves the time at which the reaper looks again.
func (s *Store) Postpone(ctx context.Context, row pipeline.Task, due pipeline.Instant) (pipeline.Task, error) {
	return s.change(ctx, "postpone", row.Ref, postpone, append(seen(row), sql.Named("due", due))...)
}

const unpark = `UPDATE tasks
SET status = 'pending',
	ready_at = :now,
	due_at = :now,
	rings = 0
WHERE job = :job AND task = :task
	AND status = 'parked'
	AND COALESCE(generation, 0) = :generation
	AND COALESCE(rings, 0) = :rings
	AND COALESCE(due_at, 0) = :due_seen`

// Unpark lets a row of a job that runs again be rung.
func (s *Store) Unpark(ctx context.Context, row pipeline.Task, now pipeline.Instant) (pipeline.Task, error) {
	return s.change(ctx, "unpark", row.Ref, unpark, append(seen(row), sql.Named("now", now))...)
}

const closeTask = `UPDATE tasks
SET status = :closed,
	reason = :reason,
	due_at = :due
WHERE job = :job AND task = :task
	AND status IN ('pending', 'parked')
	AND status = :status
	AND COALESCE(generation, 0) = :generation
	AND COALESCE(rings, 0) = :rings
	AND COALESCE(due_at, 0) = :due_seen`

// Close ends a row that nobody holds.
func (s *Store) Close(ctx context.Context, w pipeline.CloseWrite) (pipeline.Task, error) {
	return s.change(ctx, "close", w.Seen.Ref, closeTask, append(seen(w.Seen),
		sql.Named("closed", w.Status), sql.Named("reason", reasonText(w.Reason)), sql.Named("due", w.Due))...)
}

const bury = `UPDATE tasks
SET buried = 1
WHERE job = :job AND task = :task
	AND status = 'abandoned'
	AND COALESCE(generation, 0) = :generation`

// Buried marks that an abandoned row's dead letter was sent.
func (s *Store) Buried(ctx context.Context, ref pipeline.Ref, generation int64) error {
	_, err := s.change(ctx, "bury", ref, bury, sql.Named("generation", generation))
	return err
}
