package sqlitestore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"strconv"

	"holdfast/pkg/pipeline"
)

// queued begins a query over the jobs that have messages in a queue. It goes from one to the next by the index, so
// that it costs a step for each job, however many messages there are.
const queued = `WITH RECURSIVE queued (job) AS (
	SELECT MIN(job) FROM messages WHERE queue = :queue
	UNION ALL
	SELECT (SELECT MIN(job) FROM messages WHERE queue = :queue AND job > queued.job) FROM queued WHERE job IS NOT NULL
)
`

const glance = `SELECT
	COALESCE((SELECT MIN(job) FROM messages WHERE queue = :queue), ''),
	COALESCE((SELECT MAX(job) FROM messages WHERE queue = :queue), ''),
	EXISTS (
		SELECT 1 FROM messages
		WHERE queue = :queue
			AND job = (SELECT MIN(job) FROM messages WHERE queue = :queue)
			AND visible_at <= :now
	)`

const anyVisible = queued + `SELECT EXISTS (
	SELECT 1 FROM queued
	WHERE EXISTS (SELECT 1 FROM messages WHERE queue = :queue AND job = queued.job AND visible_at <= :now)
)`

// glance tells the first and the last job that has messages, and whether any message is visible.
func (q *Queue) glance(ctx context.Context, now pipeline.Instant) (first, last string, some bool, err error) {
	err = q.store.one(ctx, func(row scanner) error { return row.Scan(&first, &last, &some) },
		glance, sql.Named("queue", q.name), sql.Named("now", now))
	if err == nil && !some && first != last {
		err = q.store.one(ctx, func(row scanner) error { return row.Scan(&some) },
			anyVisible, sql.Named("queue", q.name), sql.Named("now", now))
	}
	return first, last, some, err
}

const allVisible = queued + `SELECT job FROM queued
WHERE EXISTS (SELECT 1 FROM messages WHERE queue = :queue AND job = queued.job AND visible_at <= :now)`

// chosen are the jobs with visible messages that may be received; all says that any may. It is asked before the write:
// to know whose a job is may take a read.
func (q *Queue) chosen(ctx context.Context, first, last string, now pipeline.Instant) (jobs map[string]bool, all bool, err error) {
	if q.mine == nil {
		return nil, true, nil
	}
	jobs = map[string]bool{}
	choose := func(job string) {
		if job == "" || q.mine(ctx, pipeline.JobID(job)) {
			jobs[job] = true
		}
	}
	if first == last {
		choose(first)
		return jobs, false, nil
	}
	var waiting []string
	err = q.store.query(ctx, func(row scanner) error {
		var job string
		err := row.Scan(&job)
		waiting = append(waiting, job)
		return err
	}, allVisible, sql.Named("queue", q.name), sql.Named("now", now))
	for _, job := range waiting {
		choose(job)
	}
	return jobs, false, err
}

// receive takes what is visible. A queue with nothing visible costs a read and no write. Where all messages are of one
// job, as they most often are, nobody else waits: no share need be known, and it is nobody's turn.
func (q *Queue) receive(ctx context.Context, limit int) (got []pipeline.Delivery, err error) {
	now := q.store.cfg.Now()
	first, last, some, err := q.glance(ctx, now)
	if err != nil || !some {
		return nil, err
	}
	jobs, all, err := q.chosen(ctx, first, last, now)
	if err != nil || !all && len(jobs) == 0 {
		return nil, err
	}
	err = q.store.write(ctx, func(tx *tx) error {
		if first == last {
			got, err = q.take(tx, first, limit, now)
		} else {
			got, err = q.takeFairly(tx, limit, now, func(job string) bool { return all || jobs[job] })
		}
		return err
	})
	return got, err
}

// share is what a job with visible messages has of the queue's receivers.
type share struct {
	job      string
	inFlight int
	turn     int64 // grows with each time that the job is served; 0 = never
	oldest   int64 // its oldest visible message: since when, and which
	id       int64
}

// What was put off has no receiver and is not in flight.
const shares = queued + `SELECT queued.job, (
	SELECT COUNT(*) FROM messages
	WHERE queue = :queue
		AND job = queued.job
		AND receiver IS NOT NULL
		AND visible_at > :now
), COALESCE((
	SELECT turn FROM turns WHERE queue = :queue AND job = queued.job
), 0), oldest.visible_at, oldest.id
FROM queued JOIN messages oldest ON oldest.id = (
	SELECT id FROM messages
	WHERE queue = :queue
		AND job = queued.job
		AND visible_at <= :now
	ORDER BY visible_at, id
	LIMIT 1
)`

// served gives a job the newest turn.
const served = `INSERT OR REPLACE INTO turns (queue, job) VALUES (?, ?)`

// takeFairly takes message by message from the job with the smallest share. Among equal ones it is the one that was
// served longest ago: by the age of their messages, jobs that share too few receivers would be served one by one.
func (q *Queue) takeFairly(tx *tx, limit int, now pipeline.Instant, chosen func(job string) bool) (got []pipeline.Delivery, err error) {
	jobs, err := q.shares(tx, now)
	jobs = slices.DeleteFunc(jobs, func(s *share) bool { return !chosen(s.job) })
	for len(jobs) > 0 && len(got) < limit && err == nil {
		least := slices.MinFunc(jobs, func(a, b *share) int {
			return cmp.Or(cmp.Compare(a.inFlight, b.inFlight), cmp.Compare(a.turn, b.turn),
				cmp.Compare(a.oldest, b.oldest), cmp.Compare(a.id, b.id))
		})
		var one []pipeline.Delivery
		if one, err = q.take(tx, least.job, 1, now); len(one) == 0 {
			jobs = slices.DeleteFunc(jobs, func(s *share) bool { return s == least })
			continue
		}
		got = append(got, one...)
		least.inFlight++
		err = tx.row(served+` RETURNING turn`, q.name, least.job).Scan(&least.turn)
	}
	return got, err
}

func (q *Queue) shares(tx *tx, now pipeline.Instant) (jobs []*share, err error) {
	err = tx.rows(func(row scanner) error {
		var s share
		jobs = append(jobs, &s)
		return row.Scan(&s.job, &s.inFlight, &s.turn, &s.oldest, &s.id)
	}, shares, sql.Named("queue", q.name), sql.Named("now", now))
	return jobs, err
}

const visible = `SELECT id, body, sent_at, receives FROM messages
WHERE queue = :queue
	AND job = :job
	AND visible_at <= :now
ORDER BY visible_at, id
LIMIT :limit`

// stored is a message as it lies in the queue.
type stored struct {
	id int64
	pipeline.Delivery
}

// take takes a job's oldest visible messages. What was received too often becomes a dead letter instead, as with SQS.
func (q *Queue) take(tx *tx, job string, limit int, now pipeline.Instant) (got []pipeline.Delivery, err error) {
	for asked := limit; asked > 0 && err == nil; {
		var found []stored
		err = tx.rows(func(row scanner) error {
			var m stored
			err := row.Scan(&m.id, &m.Body, &m.SentAt, &m.Receives)
			found = append(found, m)
			return err
		}, visible, sql.Named("queue", q.name), sql.Named("job", job), sql.Named("now", now), sql.Named("limit", asked))
		for i := 0; err == nil && i < len(found); i++ {
			if m := found[i]; q.maxReceives > 0 && m.Receives >= q.maxReceives {
				err = q.buryExhausted(tx, m, now)
			} else {
				got = append(got, q.deliver(m))
				err = q.hide(tx, m.id, got[len(got)-1], now)
			}
		}
		if len(found) < asked {
			break
		}
		asked = limit - len(got)
	}
	return got, err
}

// deliver is the message's next delivery, under a new receipt.
func (q *Queue) deliver(m stored) pipeline.Delivery {
	m.Delivery.Receives++
	m.Receipt = strconv.FormatInt(m.id, 10) + "." + rand.Text()
	return m.Delivery
}

// hide makes a message invisible while it is worked on.
func (q *Queue) hide(tx *tx, id int64, d pipeline.Delivery, now pipeline.Instant) error {
	_, err := tx.exec(`UPDATE messages SET visible_at = ?, receives = ?, receipt = ?, received_at = ?, receiver = ? WHERE id = ?`,
		now.Add(q.visibility), d.Receives, d.Receipt, now, q.store.cfg.Owner, id)
	return err
}
