package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// QueueConfig is how a queue behaves.
type QueueConfig struct {
	Visibility  time.Duration // how long a delivery stays invisible
	MaxReceives int           // of a message; the next receive moves it to the dead letters. 0 = never
	Now         func() pipeline.Instant
	// Failed, if set, makes entries of a batch ("Send", "Delete") come back undone.
	Failed func(op string, index int) bool
}

// Queue is a [pipeline.Queue] with the behaviour of a standard SQS queue: deliveries are invisible for a while, a
// message may be delivered more than once, and a receipt counts only until the next one. Its order is that of the
// embedded backend.
type Queue struct {
	cfg QueueConfig

	mu       sync.Mutex
	messages []*message // in the order in which they were sent
	turns    map[pipeline.JobID]int
	served   int // the newest turn
	dead     []pipeline.DeadLetter
	receipts int
	changed  chan struct{} // closed and replaced when something may have become visible
}

type message struct {
	job        pipeline.JobID // empty for what is no message
	body       []byte
	sentAt     pipeline.Instant
	visibleAt  pipeline.Instant
	receivedAt pipeline.Instant
	receives   int
	receipt    string // of the latest delivery
	putOff     bool   // delayed since
}

// maxDelay bounds the invisibility of a delivery, from its receipt.
const maxDelay = 12 * time.Hour

var _ pipeline.Choosy = (*Queue)(nil)

// chosen is a queue without the messages of jobs that are not mine.
type chosen struct {
	*Queue
	mine func(context.Context, pipeline.JobID) bool
}

// For is the queue without the messages of jobs that are not mine.
func (q *Queue) For(mine func(context.Context, pipeline.JobID) bool) pipeline.Queue {
	return &chosen{q, mine}
}

// Receive waits for deliveries of one's own jobs.
func (c *chosen) Receive(ctx context.Context, limit int, wait time.Duration) ([]pipeline.Delivery, error) {
	return c.receiveOf(ctx, limit, wait, c.mine)
}

// NewQueue is an empty queue. Without a clock of its own it has this machine's.
func NewQueue(cfg QueueConfig) *Queue {
	if cfg.Now == nil {
		cfg.Now = pipeline.NewRealClock().Now
	}
	return &Queue{cfg: cfg, turns: map[pipeline.JobID]int{}, changed: make(chan struct{})}
}

func (q *Queue) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.mu.Lock()
	return nil
}

// wake tells those who wait in Receive to look again.
func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue) fails(op string, index int) bool {
	return q.cfg.Failed != nil && q.cfg.Failed(op, index)
}

// Send sends a batch.
func (q *Queue) Send(ctx context.Context, messages []pipeline.Message) ([]pipeline.Message, error) {
	if len(messages) > pipeline.MaxBatch {
		return nil, fmt.Errorf("send %d messages: a batch has at most %d", len(messages), pipeline.MaxBatch)
	}
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	var failed []pipeline.Message
	for i, m := range messages {
		if q.fails("Send", i) {
			failed = append(failed, m)
			continue
		}
		q.send(pipeline.Encode(m))
	}
	q.wake()
	return failed, nil
}

func (q *Queue) send(body []byte) {
	now := q.cfg.Now()
	m, _ := pipeline.DecodeMessage(body) // what is no message has no job, like all others that are none
	q.messages = append(q.messages, &message{job: m.Job, body: body, sentAt: now, visibleAt: now})
}

// SendRaw sends a body that need not be a message. For tests.
func (q *Queue) SendRaw(body []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.send(bytes.Clone(body))
	q.wake()
}

// Receive waits for deliveries: in real time, whatever clock the queue has. Their order is in share.go.
func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]pipeline.Delivery, error) {
	return q.receiveOf(ctx, limit, wait, func(context.Context, pipeline.JobID) bool { return true })
}

func (q *Queue) receiveOf(ctx context.Context, limit int, wait time.Duration, mine func(context.Context, pipeline.JobID) bool) ([]pipeline.Delivery, error) {
	if limit < 1 || limit > pipeline.MaxBatch {
		return nil, fmt.Errorf("receive %d messages: a batch has 1 to %d", limit, pipeline.MaxBatch)
	}
	began := time.Now()
	for {
		chosen, err := q.chosen(ctx, mine)
		if err != nil {
			return nil, err
		}
		if err := q.enter(ctx); err != nil {
			return nil, err
		}
		deliveries := q.deliver(limit, chosen)
		again, changed := q.nextVisible(wait, chosen), q.changed
		q.mu.Unlock()
		if len(deliveries) > 0 || wait <= 0 {
			return deliveries, nil
		}
		left := wait - time.Since(began)
		if left <= 0 {
			wait = 0 // one last look
			continue
		}
		// Never a timer that is due already: in a synctest bubble a select on one runs it at once, and two goroutines that
		// do so at the same moment crash the race detector (seen with Go 1.26.8).
		timer := time.NewTimer(min(left, max(again, time.Millisecond)))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// chosen are the jobs whose messages may be received. It is asked without the lock: to know whose a job is may take a
// read. What is sent meanwhile is looked at in the next round.
func (q *Queue) chosen(ctx context.Context, mine func(context.Context, pipeline.JobID) bool) (map[pipeline.JobID]bool, error) {
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	jobs := map[pipeline.JobID]bool{}
	for _, m := range q.messages {
		jobs[m.job] = true
	}
	q.mu.Unlock()
	for job := range jobs {
		jobs[job] = job == "" || mine(ctx, job)
	}
	return jobs, nil
}

func (q *Queue) buryNative(m *message, now pipeline.Instant) {
	letter := pipeline.DeadLetter{Body: m.body, Receives: m.receives, SentAt: m.sentAt, BuriedAt: now, Native: true}
	if decoded, err := pipeline.DecodeMessage(m.body); err == nil {
		letter.Job, letter.Task = decoded.Job, decoded.Task
	}
	q.dead = append(q.dead, letter)
}

// nextVisible is how long until a message that waits may be delivered, at most wait.
func (q *Queue) nextVisible(wait time.Duration, chosen map[pipeline.JobID]bool) time.Duration {
	now := q.cfg.Now()
	for _, m := range q.messages {
		if mine, known := chosen[m.job]; known && !mine {
			continue
		}
		wait = min(wait, max(time.Millisecond, m.visibleAt.Sub(now)))
	}
	return wait
}

func (q *Queue) find(receipt string) int {
	return slices.IndexFunc(q.messages, func(m *message) bool { return receipt != "" && m.receipt == receipt })
}

// Delete removes deliveries. An old receipt removes nothing and is no failure.
func (q *Queue) Delete(ctx context.Context, deliveries []pipeline.Delivery) ([]pipeline.Delivery, error) {
	if len(deliveries) > pipeline.MaxBatch {
		return nil, fmt.Errorf("delete %d messages: a batch has at most %d", len(deliveries), pipeline.MaxBatch)
	}
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	defer q.mu.Unlock()
	var failed []pipeline.Delivery
	for i, d := range deliveries {
		if q.fails("Delete", i) {
			failed = append(failed, d)
			continue
		}
		if at := q.find(d.Receipt); at >= 0 {
			q.messages = slices.Delete(q.messages, at, at+1)
		}
	}
	return failed, nil
}

// Delay makes a delivery visible again after a while. A delivery that is visible already, or was delivered to another
// since, is left as it is.
func (q *Queue) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	if err := q.enter(ctx); err != nil {
		return err
	}
	defer q.mu.Unlock()
	now := q.cfg.Now()
	at := q.find(d.Receipt)
	if at < 0 || q.messages[at].visibleAt <= now {
		return nil
	}
	m := q.messages[at]
	m.visibleAt = min(now.Add(max(0, after)), m.receivedAt.Add(maxDelay))
	m.putOff = true
	q.wake()
	return nil
}

// Bury sends a dead letter.
func (q *Queue) Bury(ctx context.Context, letter pipeline.DeadLetter) error {
	if err := q.enter(ctx); err != nil {
		return err
	}
	defer q.mu.Unlock()
	if letter.BuriedAt == 0 {
		letter.BuriedAt = q.cfg.Now()
	}
	q.dead = append(q.dead, cloneLetter(letter))
	return nil
}

// DeadLetters is one page of the dead letters, oldest first.
func (q *Queue) DeadLetters(ctx context.Context, cursor string) ([]pipeline.DeadLetter, string, error) {
	if err := q.enter(ctx); err != nil {
		return nil, "", err
	}
	defer q.mu.Unlock()
	from := 0
	if cursor != "" {
		n, err := strconv.Atoi(cursor)
		if err != nil || n < 0 || n > len(q.dead) {
			return nil, "", fmt.Errorf("dead letters: there is no page %q", cursor)
		}
		from = n
	}
	to := min(from+pipeline.MaxBatch, len(q.dead))
	var letters []pipeline.DeadLetter
	for _, letter := range q.dead[from:to] {
		letters = append(letters, cloneLetter(letter))
	}
	if to == len(q.dead) {
		return letters, "", nil
	}
	return letters, strconv.Itoa(to), nil
}

// Unbury removes the dead letters of one job and returns how many there were.
func (q *Queue) Unbury(ctx context.Context, job pipeline.JobID) (removed int, err error) {
	if err := q.enter(ctx); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	before := len(q.dead)
	q.dead = slices.DeleteFunc(q.dead, func(l pipeline.DeadLetter) bool { return l.Job == job })
	return before - len(q.dead), nil
}

func cloneLetter(l pipeline.DeadLetter) pipeline.DeadLetter {
	l.Body = bytes.Clone(l.Body)
	l.Context = slices.Clone(l.Context)
	return l
}

// Depth counts what is visible and what is in flight.
func (q *Queue) Depth(ctx context.Context) (visible, inFlight int, err error) {
	if err := q.enter(ctx); err != nil {
		return 0, 0, err
	}
	defer q.mu.Unlock()
	now := q.cfg.Now()
	for _, m := range q.messages {
		if m.visibleAt <= now {
			visible++
		} else {
			inFlight++
		}
	}
	return visible, inFlight, nil
}
