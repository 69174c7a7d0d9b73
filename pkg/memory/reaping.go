package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// Due is one page of the listed rows of a shard that are due, most overdue first.
func (s *Store) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	if shard < 0 || shard >= pipeline.DueShards {
		return nil, "", fmt.Errorf("due shard %d: there are %d", shard, pipeline.DueShards)
	}
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	var due []pipeline.Task
	for ref := range s.listed[shard] {
		row, _ := s.row(ref)
		if row.DueAt <= now {
			due = append(due, row)
		}
	}
	overdue := func(t pipeline.Task) string { return fmt.Sprintf("%020d %s", int64(t.DueAt), t.Ref) }
	slices.SortFunc(due, func(a, b pipeline.Task) int { return strings.Compare(overdue(a), overdue(b)) })
	rows, next := turn(due, cursor, s.PageBytes, overdue, sizeOf[pipeline.Task])
	return rows, next, nil
}

// Expire ends somebody else's claim that lapsed.
func (s *Store) Expire(ctx context.Context, w pipeline.ExpireWrite) (pipeline.Task, error) {
	return s.change(ctx, "expire", w.Seen.Ref, func(row pipeline.Task) bool {
		return row.Generation == w.Seen.Generation &&
			row.Accepted == w.Seen.Accepted &&
			row.Expirable(w)
	}, func(row *pipeline.Task) {
		become(row, w.Verdict)
		row.ReadyAt = w.ReadyAt
		row.DueAt = w.DueAt
		row.EndedBy = pipeline.ExpiredBy
		row.Reason = w.Reason
	})
}

// seenSo is the reaper's condition: nobody has claimed or rung the row, or moved it on, since it was read.
func seenSo(row, seen pipeline.Task) bool {
	return row.Status == seen.Status &&
		row.Generation == seen.Generation &&
		row.Rings == seen.Rings &&
		row.DueAt == seen.DueAt
}

// Ring says that a message is about to be sent. The ring number never goes back.
func (s *Store) Ring(ctx context.Context, w pipeline.RingWrite) (pipeline.Task, error) {
	return s.change(ctx, "ring", w.Seen.Ref, func(row pipeline.Task) bool {
		return seenSo(row, w.Seen) &&
			row.Status == pipeline.TaskPending
	}, func(row *pipeline.Task) {
		row.Ring++
		row.Rings = w.Count
		row.DueAt = w.Due
	})
}

// Postpone moves due_at alone.
func (s *Store) Postpone(ctx context.Context, seen pipeline.Task, due pipeline.Instant) (pipeline.Task, error) {
	return s.change(ctx, "postpone", seen.Ref, func(row pipeline.Task) bool {
		return seenSo(row, seen)
	}, func(row *pipeline.Task) {
		row.DueAt = due
	})
}

// Unpark makes a parked row ready and due at once.
func (s *Store) Unpark(ctx context.Context, seen pipeline.Task, now pipeline.Instant) (pipeline.Task, error) {
	return s.change(ctx, "unpark", seen.Ref, func(row pipeline.Task) bool {
		return seenSo(row, seen) &&
			row.Status == pipeline.TaskParked
	}, func(row *pipeline.Task) {
		row.Status = pipeline.TaskPending
		row.ReadyAt = now
		row.DueAt = now
		row.Rings = 0
	})
}

// Close ends a row that nobody holds.
func (s *Store) Close(ctx context.Context, w pipeline.CloseWrite) (pipeline.Task, error) {
	return s.change(ctx, "close", w.Seen.Ref, func(row pipeline.Task) bool {
		return seenSo(row, w.Seen) &&
			(row.Status == pipeline.TaskPending || row.Status == pipeline.TaskParked)
	}, func(row *pipeline.Task) {
		row.Status = w.Status
		row.Reason = w.Reason
		row.DueAt = w.Due
	})
}

// Buried takes an abandoned row out of the due index: its dead letter was sent.
func (s *Store) Buried(ctx context.Context, ref pipeline.Ref, generation int64) error {
	_, err := s.change(ctx, "bury", ref, func(row pipeline.Task) bool {
		return row.Status == pipeline.TaskAbandoned &&
			row.Generation == generation
	}, func(row *pipeline.Task) {
		row.Buried = true
	})
	return err
}
