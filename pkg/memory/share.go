package memory

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"holdfast/pkg/pipeline"
)

// share is what a job has of the queue's receivers, and its visible messages, oldest first.
type share struct {
	job      pipeline.JobID
	inFlight int
	visible  []*message
}

// deliver takes message by message from the job with the fewest in flight. Among equal ones it is the one that was
// served longest ago: by the age of their messages, jobs that share too few receivers would be served one by one.
// What was received too often is buried instead.
func (q *Queue) deliver(limit int, chosen map[pipeline.JobID]bool) (deliveries []pipeline.Delivery) {
	now := q.cfg.Now()
	shares := slices.DeleteFunc(q.shares(now), func(s *share) bool { return !chosen[s.job] })
	for len(shares) > 0 && len(deliveries) < limit {
		least := slices.MinFunc(shares, func(a, b *share) int {
			return cmp.Or(cmp.Compare(a.inFlight, b.inFlight), cmp.Compare(q.turns[a.job], q.turns[b.job]),
				cmp.Compare(a.visible[0].visibleAt, b.visible[0].visibleAt))
		})
		m := least.visible[0]
		if least.visible = least.visible[1:]; len(least.visible) == 0 {
			shares = slices.DeleteFunc(shares, func(s *share) bool { return s == least })
		}
		if q.cfg.MaxReceives > 0 && m.receives >= q.cfg.MaxReceives {
			q.buryNative(m, now)
			q.messages = slices.DeleteFunc(q.messages, func(other *message) bool { return other == m })
			continue
		}
		deliveries = append(deliveries, q.receive(m, now))
		least.inFlight++
		q.served++
		q.turns[least.job] = q.served
	}
	return deliveries
}

// shares are those of the jobs that have visible messages, in the order in which their first was sent.
func (q *Queue) shares(now pipeline.Instant) (shares []*share) {
	of := map[pipeline.JobID]*share{}
	for _, m := range q.messages {
		s := of[m.job]
		if s == nil {
			s = &share{job: m.job}
			of[m.job] = s
			shares = append(shares, s)
		}
		switch {
		case m.visibleAt <= now:
			s.visible = append(s.visible, m)
		case m.receives > 0 && !m.putOff:
			s.inFlight++
		}
	}
	for _, s := range shares {
		slices.SortStableFunc(s.visible, func(a, b *message) int { return cmp.Compare(a.visibleAt, b.visibleAt) })
	}
	return slices.DeleteFunc(shares, func(s *share) bool { return len(s.visible) == 0 })
}

// receive makes a message invisible, under a new receipt.
func (q *Queue) receive(m *message, now pipeline.Instant) pipeline.Delivery {
	q.receipts++
	m.receipt = strconv.Itoa(q.receipts)
	m.receives++
	m.receivedAt = now
	m.visibleAt = now.Add(q.cfg.Visibility)
	m.putOff = false
	return pipeline.Delivery{Body: bytes.Clone(m.body), Receipt: m.receipt, Receives: m.receives, SentAt: m.sentAt}
}
