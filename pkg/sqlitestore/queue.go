package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

const (
	queuePoll = 25 * time.Millisecond // how soon a message of another process is noticed
	maxDelay  = 12 * time.Hour        // of a delivery, from its receipt
)

// Queue is a queue with its dead-letter queue, in the store's file.
type Queue struct {
	store       *Store
	name        string
	visibility  time.Duration
	maxReceives int
	mine        func(context.Context, pipeline.JobID) bool // whose messages are received; nil = all
}

var _ pipeline.Choosy = (*Queue)(nil)

// For is the queue without the messages of jobs that are not mine.
func (q *Queue) For(mine func(context.Context, pipeline.JobID) bool) pipeline.Queue {
	chosen := *q
	chosen.mine = mine
	return &chosen
}

// Queue is the queue of that name; it begins to exist with its first message.
func (s *Store) Queue(name string, visibility time.Duration, maxReceives int) *Queue {
	return &Queue{store: s, name: name, visibility: visibility, maxReceives: maxReceives}
}

// bell wakes the receivers of this process.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

// heard is closed at the next ring.
func (b *bell) heard() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

const send = `INSERT INTO messages (queue, job, body, sent_at, visible_at) VALUES (?, ?, ?, ?, ?)`

// Send sends all messages or none.
func (q *Queue) Send(ctx context.Context, messages []pipeline.Message) (failed []pipeline.Message, err error) {
	if len(messages) > pipeline.MaxBatch {
		return nil, q.named("send", fmt.Errorf("%d messages: at most %d at once", len(messages), pipeline.MaxBatch))
	}
	bodies := make([][]byte, len(messages))
	for i, m := range messages {
		bodies[i] = pipeline.Encode(m)
	}
	if err := q.send(ctx, bodies...); err != nil {
		return messages, q.named("send", err)
	}
	return nil, nil
}

func (q *Queue) send(ctx context.Context, bodies ...[]byte) error {
	now := q.store.cfg.Now()
	err := q.store.write(ctx, func(tx *tx) error {
		for _, body := range bodies {
			m, _ := pipeline.DecodeMessage(body) // what is no message has no job, like all others that are none
			if _, err := tx.exec(send, q.name, m.Job, string(body), now, now); err != nil {
				return err
			}
		}
		return nil
	})
	q.store.bell.ring()
	return err
}

// Receive looks at once, again whenever this process sends, and now and then for what others sent. Its order is in
// receive.go.
func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]pipeline.Delivery, error) {
	if limit < 1 || limit > pipeline.MaxBatch {
		return nil, q.named("receive", fmt.Errorf("%d messages: 1 to %d at once", limit, pipeline.MaxBatch))
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	again := time.NewTicker(queuePoll)
	defer again.Stop()
	for {
		heard := q.store.bell.heard()
		got, err := q.receive(ctx, limit)
		if err != nil {
			return nil, q.named("receive", err)
		}
		if len(got) > 0 || wait <= 0 {
			return got, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-over.C:
			wait = 0 // one last look
		case <-heard:
		case <-again.C:
		}
	}
}

// messageOf is which message a receipt belongs to; 0 for what is no receipt.
func messageOf(receipt string) int64 {
	id, _, _ := strings.Cut(receipt, ".")
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

const remove = `DELETE FROM messages
WHERE id = ?
	AND receipt = ?`

// Delete removes deliveries by their current receipt. An old receipt removes nothing and is no failure.
func (q *Queue) Delete(ctx context.Context, deliveries []pipeline.Delivery) (failed []pipeline.Delivery, err error) {
	if len(deliveries) > pipeline.MaxBatch {
		return nil, q.named("delete", fmt.Errorf("%d deliveries: at most %d at once", len(deliveries), pipeline.MaxBatch))
	}
	err = q.store.write(ctx, func(tx *tx) error {
		for _, d := range deliveries {
			if _, err := tx.exec(remove, messageOf(d.Receipt), d.Receipt); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return deliveries, q.named("delete", err)
	}
	return nil, nil
}

const delay = `UPDATE messages
SET visible_at = MIN(:visible, received_at + :longest), receiver = NULL
WHERE id = :id
	AND receipt = :receipt
	AND visible_at > :now`

// Delay makes a delivery visible again after a time. One that is visible already, or was received again, is left as
// it is.
func (q *Queue) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	now := q.store.cfg.Now()
	err := q.store.write(ctx, func(tx *tx) error {
		_, err := tx.exec(delay, sql.Named("visible", now.Add(after)), sql.Named("longest", maxDelay.Milliseconds()),
			sql.Named("id", messageOf(d.Receipt)), sql.Named("receipt", d.Receipt), sql.Named("now", now))
		return err
	})
	q.store.bell.ring()
	return q.named("delay", err)
}

const release = `UPDATE messages
SET visible_at = :now
WHERE receiver = :owner
	AND receiver <> ''
	AND visible_at > :now`

// Release makes visible, in all queues, the deliveries that an owner took and did nothing with: it is a process that
// has exited, and the caller has waited for that.
func (s *Store) Release(ctx context.Context, owner string) error {
	now := s.cfg.Now()
	err := s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(release, sql.Named("now", now), sql.Named("owner", owner))
		return err
	})
	s.bell.ring()
	return named("release the deliveries of "+owner, err)
}

// Depth is how many messages are visible and how many in flight.
func (q *Queue) Depth(ctx context.Context) (visible, inFlight int, err error) {
	err = q.store.one(ctx, func(row scanner) error { return row.Scan(&visible, &inFlight) }, `SELECT
	COUNT(*) FILTER (WHERE visible_at <= :now),
	COUNT(*) FILTER (WHERE visible_at > :now)
FROM messages
WHERE queue = :queue`, sql.Named("now", q.store.cfg.Now()), sql.Named("queue", q.name))
	return visible, inFlight, q.named("depth", err)
}

func (q *Queue) named(what string, err error) error { return named("queue "+q.name+": "+what, err) }

// number is a cursor of one number; 0 for the first.
func number(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	return strconv.ParseInt(cursor, 10, 64)
}
