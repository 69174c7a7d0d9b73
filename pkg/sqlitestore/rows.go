package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// taskRow reads a whole row. A column that an older version or a person left out is read as its zero.
const taskRow = `job, task, COALESCE(tenant, ''), COALESCE(status, ''),
	COALESCE(generation, 0), COALESCE(attempts, 0), COALESCE(deferrals, 0), COALESCE(losses, 0),
	COALESCE(stages, 0), COALESCE(accepted, 0), COALESCE(bodies, ''),
	COALESCE(claimed_by, ''), COALESCE(claim_id, ''), COALESCE(claimed_at, 0), COALESCE(expires_at, 0),
	COALESCE(stage, 0), COALESCE(stage_at, 0), COALESCE(answers, 0), COALESCE(allowed, 0), COALESCE(max_tries, 0),
	COALESCE(ready_at, 0), COALESCE(due_at, 0), COALESCE(ring, 0), COALESCE(rings, 0),
	COALESCE(ended_by, ''), COALESCE(reason, ''), COALESCE(buried, 0)`

// scanTask reads a row whatever a person left in its texts: one bad row must not hide the others of its page.
func scanTask(s scanner) (pipeline.Task, error) {
	var t pipeline.Task
	var bodies, reason string
	err := s.Scan(&t.Job, &t.ID, &t.Tenant, &t.Status,
		&t.Generation, &t.Attempts, &t.Deferrals, &t.Losses,
		&t.Stages, &t.Accepted, &bodies,
		&t.ClaimedBy, &t.ClaimID, &t.ClaimedAt, &t.ExpiresAt,
		&t.Stage, &t.StageAt, &t.Answers, &t.Allowed, &t.MaxTries,
		&t.ReadyAt, &t.DueAt, &t.Ring, &t.Rings,
		&t.EndedBy, &reason, &t.Buried)
	if err != nil {
		return pipeline.Task{}, err
	}
	t.Bodies, t.Reason = bodiesOf(bodies), reasonOf(reason)
	return t, nil
}

// bodiesOf are none where they cannot be read: the row keeps what it accepted, and whoever needs a body finds none.
func bodiesOf(stored string) []int64 {
	var bodies []int64
	if fromText(stored, &bodies) != nil {
		return nil
	}
	return bodies
}

// reasonOf says so where the reason cannot be read.
func reasonOf(stored string) pipeline.Failure {
	var reason pipeline.Failure
	if err := fromText(stored, &reason); err != nil {
		return pipeline.Fail(pipeline.Broken, "the stored reason cannot be read: %v: %s", err, pipeline.Cut(stored, 100))
	}
	return reason
}

// insertTask puts a row only if absent.
const insertTask = `INSERT INTO tasks (
	job, task, tenant, status,
	generation, attempts, deferrals, losses,
	stages, accepted, bodies,
	claimed_by, claim_id, claimed_at, expires_at,
	stage, stage_at, answers, allowed, max_tries,
	ready_at, due_at, ring, rings,
	ended_by, reason, buried, shard)
VALUES (?,?,?,?, ?,?,?,?, ?,?,?, ?,?,?,?, ?,?,?,?,?, ?,?,?,?, ?,?,?,?)
ON CONFLICT (job, task) DO NOTHING`

func putTask(tx *tx, t pipeline.Task) error {
	_, err := tx.exec(insertTask, t.Job, t.ID, t.Tenant, t.Status,
		t.Generation, t.Attempts, t.Deferrals, t.Losses,
		t.Stages, t.Accepted, bodiesText(t.Bodies),
		t.ClaimedBy, t.ClaimID, t.ClaimedAt, t.ExpiresAt,
		t.Stage, t.StageAt, t.Answers, t.Allowed, t.MaxTries,
		t.ReadyAt, t.DueAt, t.Ring, t.Rings,
		t.EndedBy, reasonText(t.Reason), t.Buried, t.DueShard())
	return err
}

// text is a value as JSON text.
func text(v any) string { return string(pipeline.Encode(v)) }

// bodiesText is empty where there is no list: "null" is none that one can add to.
func bodiesText(bodies []int64) string {
	if bodies == nil {
		return ""
	}
	return text(bodies)
}

// keptBodies is the row's list cut or filled up to the length of :kept, whatever an older row has. A list that cannot be
// read is as if it were empty.
const keptBodies = `(SELECT json_group_array(CASE WHEN json_valid(bodies) THEN bodies END ->> key) FROM json_each(:kept))`

// places is a list of n zeros.
func places(n int) string { return text(make([]int64, max(0, n))) }

// reasonText is empty where there is no reason, so that a person sees at a glance which rows have one.
func reasonText(f pipeline.Failure) string {
	if f == (pipeline.Failure{}) {
		return ""
	}
	return text(f)
}

// fromText reads what text wrote; nothing is the zero value.
func fromText(body string, v any) error {
	if body == "" {
		return nil
	}
	return json.Unmarshal([]byte(body), v)
}

// decodeRow reads a row that is one JSON body.
func decodeRow[T any](s scanner) (T, error) {
	var v T
	var body string
	if err := s.Scan(&body); err != nil {
		return v, err
	}
	return v, fromText(body, &v)
}

// change makes the one conditional update of a task's row. Where it is refused, the row is read in the same
// transaction, so that Old is what the condition met.
func (s *Store) change(ctx context.Context, op string, ref pipeline.Ref, update string, args ...any) (changed pipeline.Task, err error) {
	if err := weigh(textsOf(args)...); err != nil {
		return pipeline.Task{}, named(op+" "+ref.String(), err)
	}
	err = s.write(ctx, func(tx *tx) (err error) {
		changed, err = changeTask(tx, op, ref, update, args...)
		return err
	})
	return changed, named(op+" "+ref.String(), err)
}

func changeTask(tx *tx, op string, ref pipeline.Ref, update string, args ...any) (pipeline.Task, error) {
	args = append(args, sql.Named("job", ref.Job), sql.Named("task", ref.ID))
	changed, err := scanTask(tx.row(update+"\nRETURNING "+taskRow, args...))
	if !errors.Is(err, sql.ErrNoRows) {
		return changed, err
	}
	return pipeline.Task{}, refusal(tx, op, ref)
}

// refusal reads the row that a condition met.
func refusal(tx *tx, op string, ref pipeline.Ref) error {
	refused := &pipeline.ConditionError{Op: op, Ref: ref}
	old, err := scanTask(tx.row(`SELECT `+taskRow+` FROM tasks WHERE job = ? AND task = ?`, ref.Job, ref.ID))
	switch {
	case err == nil:
		refused.Old = &old
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return refused
}

func textsOf(args []any) (texts []string) {
	for _, arg := range args {
		if named, ok := arg.(sql.NamedArg); ok {
			if s, ok := named.Value.(string); ok {
				texts = append(texts, s)
			}
		}
	}
	return texts
}

// named says what was being done. A refusal says so by itself.
func named(what string, err error) error {
	var refused *pipeline.ConditionError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// weigh refuses what is larger than an item may be.
func weigh(parts ...string) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size > pipeline.MaxItem {
		return fmt.Errorf("%w: %d bytes, at most %d", pipeline.ErrTooLarge, size, pipeline.MaxItem)
	}
	return nil
}

// page counts what goes into one page of a query.
type page struct{ bytes int }

// takes says that a row of so many bytes still fits. A page takes at least one.
func (p *page) takes(size int) bool {
	fits := p.bytes == 0 || p.bytes+size <= pipeline.MaxPage
	p.bytes += size
	return fits
}

// joined is a cursor of several parts; parts never contain a line feed.
func joined(parts ...string) string { return strings.Join(parts, "\n") }

// parted takes a cursor of n parts apart; n empty ones for the first.
func parted(cursor string, n int) ([]string, error) {
	if cursor == "" {
		return make([]string, n), nil
	}
	parts := strings.Split(cursor, "\n")
	if len(parts) != n {
		return nil, fmt.Errorf("%q is not a cursor", pipeline.Cut(cursor, 60))
	}
	return parts, nil
}
