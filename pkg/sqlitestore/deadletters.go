package sqlitestore

import (
	"context"
	"strconv"

	"holdfast/pkg/pipeline"
)

// buryExhausted moves what was received too often to the dead letters.
func (q *Queue) buryExhausted(tx *tx, m stored, now pipeline.Instant) error {
	letter := pipeline.DeadLetter{Body: m.Body, Receives: m.Receives, SentAt: m.SentAt, BuriedAt: now, Native: true}
	if decoded, err := pipeline.DecodeMessage(m.Body); err == nil {
		letter.Job, letter.Task = decoded.Job, decoded.Task
	}
	if _, err := tx.exec(`DELETE FROM messages WHERE id = ?`, m.id); err != nil {
		return err
	}
	return q.bury(tx, letter)
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
