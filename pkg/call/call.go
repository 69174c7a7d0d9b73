// Package call asks one call: a stored reply if there is one, else the model, in tries (tier one), and stores what
// comes back before it is used.
//
// It may decide: whether a call is tried again in this attempt, what an answer is worth, when the model's breaker is
// struck. It may not send a try that [pipeline.Attempt.MaySend] did not allow right before, and it ends no task.
package call

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// Config is all that a Caller needs.
type Config struct {
	Model    pipeline.Model
	Replies  pipeline.Replies
	Blobs    pipeline.Blobs
	Budgets  pipeline.Budgets
	Limits   pipeline.Limits
	Clock    pipeline.Clock
	Policy   pipeline.Policy
	InFlight int   // tries at once, of this process
	Slots    Slots // shared with the process's other Callers, in InFlight's place; nil = its own
	// OpenBudget opens the budget of a job that was started without a look at its plan. Repeating it is harmless.
	OpenBudget func(ctx context.Context, job pipeline.JobID) error
	// EndJob cancels a job, for the reason that a try of its handler cost more than it may. Repeating it is harmless.
	EndJob  func(ctx context.Context, job pipeline.JobID, reason string) error
	Jitter  func() float64
	Observe func(task pipeline.Ref, answer pipeline.Answer) // told of every answer, for progress; may be nil
}

// Slots bound the tries in flight of a process.
type Slots chan struct{}

// unsavedShare is how many slots there are for each answer that may be unstored beside the tries in flight.
const unsavedShare = 8

// NewSlots is room for n tries.
func NewSlots(n int) Slots { return make(Slots, max(1, n)) }

// Caller asks questions. It implements [pipeline.Asker].
type Caller struct {
	cfg     Config
	info    pipeline.ModelInfo
	slots   Slots // a try in flight holds one; waiting for a retry holds none
	unsaved Slots // what came back, is not stored yet and gave its slot away holds one
	door    *door
	purses  purses
	meter   meter

	mu        sync.Mutex
	flights   map[pipeline.ReplyKey]*flight // keys that this process is asking now
	answered  map[pipeline.ReplyKey]bool    // keys that it asked lately
	overspent map[beginning]*overspending
}

// New is a Caller.
func New(cfg Config) *Caller {
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	if cfg.Observe == nil {
		cfg.Observe = func(pipeline.Ref, pipeline.Answer) {}
	}
	if cfg.OpenBudget == nil {
		cfg.OpenBudget = func(_ context.Context, job pipeline.JobID) error {
			return fmt.Errorf("job %s has no budget: %w", job, pipeline.ErrNotFound)
		}
	}
	c := &Caller{cfg: cfg, info: cfg.Model.Info(), flights: map[pipeline.ReplyKey]*flight{}, answered: map[pipeline.ReplyKey]bool{}, overspent: map[beginning]*overspending{}}
	if c.slots = cfg.Slots; c.slots == nil {
		c.slots = NewSlots(cfg.InFlight)
	}
	c.unsaved = NewSlots(cap(c.slots) / unsavedShare)
	c.door = &door{limits: cfg.Limits, clock: cfg.Clock, info: c.info, policy: cfg.Policy, share: newShare()}
	c.purses.open = map[pipeline.Fence]*purse{}
	return c
}

// Ask returns one answer per question, in their order, once nothing is in flight any more.
func (c *Caller) Ask(ctx context.Context, a pipeline.Attempt, questions []pipeline.Question) []pipeline.Answer {
	answers := make([]pipeline.Answer, len(questions))
	open, err := c.stored(ctx, a, questions, answers)
	if err != nil {
		return c.all(answers, open, pipeline.Fail(pipeline.StoreFault, "read the stored replies: %v", err), 0)
	}
	if len(open) == 0 {
		return answers
	}
	if closed, wait := c.door.closed(ctx); closed != nil {
		return c.all(answers, open, *closed, wait)
	}
	purse, err := c.openPurse(ctx, a, questions, open)
	if err != nil {
		return c.noMoney(a, answers, open, err)
	}
	var group pipeline.Group
	read := c.cfg.Clock.Mono()
	for n, i := range open {
		if err := c.seat(ctx, a); err != nil {
			answers[i] = pipeline.Answer{Stop: err}
			continue
		}
		if c.cfg.Clock.Mono()-read >= c.cfg.Policy.ReplyFresh {
			c.storedMeanwhile(ctx, a, questions, answers, open[n:])
			read = c.cfg.Clock.Mono()
		}
		if answers[i].Reused {
			<-c.slots
			continue
		}
		group.Go(func() {
			t := &asking{c: c, a: a, q: questions[i], purse: purse, seated: true}
			answers[i] = t.ask(ctx)
			t.unseat()
			c.cfg.Observe(a.Claim().Ref, answers[i])
		})
	}
	group.Wait()
	return answers
}

// stored fills in the answers whose replies are stored and returns the numbers of the others.
func (c *Caller) stored(ctx context.Context, a pipeline.Attempt, questions []pipeline.Question, answers []pipeline.Answer) (open []int, err error) {
	job := a.Job()
	requests := make([]pipeline.Request, len(questions))
	for i := range questions {
		open = append(open, i)
		requests[i] = questions[i].Request
	}
	keys := pipeline.KeysOf(job.Tenant, job.Model, job.Sample, requests)
	for i, key := range keys {
		questions[i].Request.Key = key
	}
	found, err := pipeline.ReadReplies(ctx, c.cfg.Replies, c.cfg.Blobs, c.cfg.Clock, keys)
	if err != nil {
		return open, err
	}
	open = open[:0]
	for i, key := range keys {
		reply, ok := found[key]
		if !ok {
			open = append(open, i)
			continue
		}
		answers[i] = pipeline.Answer{Reply: reply, Reused: true}
		c.cfg.Observe(a.Claim().Ref, answers[i])
	}
	return open, nil
}

// storedMeanwhile looks again for the replies of questions that wait for their slot: another draft of the document, or a
// worker whose claim was taken, may have stored them. What cannot be read now is asked.
func (c *Caller) storedMeanwhile(ctx context.Context, a pipeline.Attempt, questions []pipeline.Question, answers []pipeline.Answer, open []int) {
	var keys []pipeline.ReplyKey
	for _, i := range open {
		if !answers[i].Reused {
			keys = append(keys, questions[i].Request.Key)
		}
	}
	found, err := pipeline.ReadReplies(ctx, c.cfg.Replies, c.cfg.Blobs, c.cfg.Clock, keys)
	if err != nil {
		return
	}
	for _, i := range open {
		reply, ok := found[questions[i].Request.Key]
		if ok && !answers[i].Reused {
			answers[i] = pipeline.Answer{Reply: reply, Reused: true}
			c.cfg.Observe(a.Claim().Ref, answers[i])
		}
	}
}

// all gives the same failure, which is everybody's, to all open questions.
func (c *Caller) all(answers []pipeline.Answer, open []int, f pipeline.Failure, wait time.Duration) []pipeline.Answer {
	for _, i := range open {
		answers[i] = pipeline.Answer{Failure: f, Defers: true, Wait: wait}
	}
	return answers
}

// seat waits for a free slot, or for the reason why there is no more use in waiting.
func (c *Caller) seat(ctx context.Context, a pipeline.Attempt) error {
	if stopped := a.Stop(); stopped != nil { // a free slot is no reason to go on
		return stopped
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-a.Stopped():
		return a.Stop()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// store keeps an answer before it is used; the loser of a race uses the winner's.
func (c *Caller) store(ctx context.Context, r pipeline.Reply) (pipeline.Reply, error) {
	keep := context.WithoutCancel(ctx) // it was paid for
	if len(r.Text) > inlineReply {
		sum := sha256.Sum256([]byte(r.Text))
		r.Blob = "reply/" + string(r.Key) + "-" + hex.EncodeToString(sum[:8]) // a loser's text never replaces the winner's
		if err := c.cfg.Blobs.PutBlob(keep, r.Blob, []byte(r.Text)); err != nil {
			return r, fmt.Errorf("store the reply's text: %w", err)
		}
	}
	item := r
	if r.Blob != "" {
		item.Text = ""
	}
	began := c.cfg.Clock.Mono()
	var err error
	for n := 0; n < storeTries || (ctx.Err() == nil && c.cfg.Clock.Mono()-began < storeFor); n++ {
		var stands pipeline.Reply
		if stands, err = c.cfg.Replies.PutReply(keep, item); err == nil {
			return c.whole(keep, stands, r)
		}
		if !errors.Is(err, pipeline.ErrBusy) {
			break
		}
		if sleep := c.cfg.Clock.Sleep(keep, min(100*time.Millisecond<<min(n, storeTries), storeWait)); sleep != nil {
			break
		}
	}
	return r, fmt.Errorf("store the reply: %w", err)
}

// whole is the reply that stands with its text; ours has it already.
func (c *Caller) whole(ctx context.Context, stands, ours pipeline.Reply) (pipeline.Reply, error) {
	if stands.Blob == "" {
		return stands, nil
	}
	if stands.Blob == ours.Blob {
		stands.Text = ours.Text
		return stands, nil
	}
	body, err := c.cfg.Blobs.Blob(ctx, stands.Blob)
	if err != nil {
		return ours, nil // its body has gone: ours is as good
	}
	stands.Text = string(body)
	return stands, nil
}

const (
	inlineReply = 300 << 10 // a longer text goes to the blobs
	storeTries  = 6         // of one write, while the store is busy

	// An answer is held through an outage of the store: it was paid for, and whoever takes the chunk next would pay again.
	// The last wait is short, so that the answer is there before anyone could ask. Nothing is held for long once the work
	// was dropped: a handler that does not return is taken for one that hangs.
	storeFor  = 90 * time.Second
	storeWait = time.Second
)
