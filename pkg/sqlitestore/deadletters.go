package sqlitestore

import (
	"context"
	"database/sql"
	"strconv"

	"holdfast/pkg/pipeline"
)

// exhausted goes by the index of receives, which finds next to nothing (the + keeps it from walking all that is
// visible).
const exhausted = `DELETE FROM messages
WHERE queue = :queue
	AND +visible_at <= :now
	AND receives >= :max_receives
RETURNING body, sent_at, receives`

// buryExhausted moves what was received too often to the dead letters, as SQS does on the next receive.
func (q *Queue) buryExhausted(tx *tx, now pipeline.Instant) error {
	if q.maxReceives <= 0 {
		return nil
	}
	var letters []pipeline.DeadLetter
	err := tx.rows(func(row scanner) error {
		letter := pipeline.DeadLetter{BuriedAt: now, Native: true}
		if err := row.Scan(&letter.Body, &letter.SentAt, &letter.Receives); err != nil {
			return err
		}
		letters = append(letters, letter)
		return nil
	}, exhausted, sql.Named("queue", q.name), sql.Named("now", now), sql.Named("max_receives", q.maxReceives))
	if err != nil {
		return err
	}
	for _, letter := range letters {
		if m, err := pipeline.DecodeMessage(letter.Body); err == nil {
			letter.Job, letter.Task = m.Job, m.Task
		}
		if err := q.bury(tx, letter); err != nil {
			return err
		}
	}
	return nil
}

// Bury sends a dead letter.
func (q *Queue) Bury(ctx context.Context, letter pipeline.DeadLetter) error {
	if letter.BuriedAt == 0 {
		letter.BuriedAt = q.store.cfg.Now()
	}
	if err := weigh(text(letter)); err != nil {
		return q.named("bury", err)
	}
	return q.named("bury", q.store.write(ctx, func(tx *tx) error { return q.bury(tx, letter) }))
}

func (q *Queue) bury(tx *tx, letter pipeline.DeadLetter) error {
	_, err := tx.exec(`INSERT INTO dead_letters (queue, body) VALUES (?, ?)`, q.name, text(letter))
	return err
}

// DeadLetters is one page of the dead-letter queue, oldest first.
func (q *Queue) DeadLetters(ctx context.Context, cursor string) (letters []pipeline.DeadLetter, next string, err error) {
	after, err := number(cursor)
	if err != nil {
		return nil, "", q.named("dead letters", err)
	}
	var size page
	var last int64
	err = q.store.query(ctx, func(row scanner) error {
		var id int64
		var body string
		if err := row.Scan(&id, &body); err != nil {
			return err
		}
		if !size.takes(len(body)) {
			next = strconv.FormatInt(last, 10)
			return errEnough
		}
		letter, err := pipeline.Decode[pipeline.DeadLetter]([]byte(body), "dead letter")
		letters, last = append(letters, letter), id
		return err
	}, `SELECT id, body FROM dead_letters
WHERE queue = ?
	AND id > ?
ORDER BY id`, q.name, after)
	if err != nil {
		return nil, "", q.named("dead letters", err)
	}
	return letters, next, nil
}
