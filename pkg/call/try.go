package call

import (
	"context"
	"errors"
	"math"
	"time"

	"holdfast/pkg/pipeline"
)

// errCallTimeout is the cause of a try that took too long.
var errCallTimeout = errors.New("no answer within the call's time")

// asking is one question on its way through tier one.
type asking struct {
	c      *Caller
	a      pipeline.Attempt
	q      pipeline.Question
	purse  *purse
	seated bool

	n       int           // tries sent
	waited  time.Duration // between tries
	reasks  int
	grown   bool // max_tokens was raised once
	cost    pipeline.Money
	request pipeline.Request
}

// ask tries until there is an answer, a failure that more tries cannot help, or a reason to stop.
func (t *asking) ask(ctx context.Context) (answer pipeline.Answer) {
	settled, land := t.flight(ctx)
	if settled != nil {
		return *settled
	}
	defer func() { land(answer) }()
	t.request = t.q.Request
	for {
		result := t.try(ctx)
		if result.done {
			result.answer.Tries, result.answer.Cost = t.n, t.cost
			return result.answer
		}
		if err := t.pause(ctx, result.wait); err != nil {
			return pipeline.Answer{Stop: err, Tries: t.n, Cost: t.cost}
		}
	}
}

// result is what one try led to: the call's answer, or another try after a wait.
type result struct {
	done   bool
	answer pipeline.Answer
	wait   time.Duration
}

func finished(answer pipeline.Answer) result { return result{done: true, answer: answer} }
func stop(err error) result                  { return finished(pipeline.Answer{Stop: err}) }

// try sends the request once, as the last thing after every wait.
func (t *asking) try(ctx context.Context) result {
	if wait := t.c.door.openFor(); wait > 0 {
		return finished(pipeline.Answer{Failure: pipeline.Fail(pipeline.Busy, "the breaker of %s is open", t.c.info.Name), Defers: true, Wait: wait})
	}
	most := t.c.meter.most(t.c.info, t.request)
	if err := t.purse.take(ctx, most); err != nil {
		return t.noMoney(err)
	}
	slot, err := t.admit(ctx)
	if err != nil {
		t.purse.give(most, 0)
		return t.busy(err)
	}
	if err := t.a.MaySend(ctx); err != nil {
		t.purse.give(most, 0)
		slot.refund(ctx, 0)
		return stop(err)
	}
	t.n++
	try, sent := t.send(ctx)
	defer t.came()()
	t.c.meter.count(t.request, try.Usage.Input)
	slot.refund(ctx, try.Usage.Input+try.Usage.Output)
	if try.Free() {
		t.a.Unsent()
	}
	if try.Unsure {
		try.Cost = most
	}
	t.purse.give(most, try.Cost)
	t.cost += try.Cost
	r := t.judge(ctx, &try, sent)
	t.a.Record(try)
	return r
}

// sent is what came back from one Complete.
type sent struct {
	response pipeline.Response
	failure  pipeline.Failure
	usage    pipeline.Usage
	cost     pipeline.Money // of a handler's try
	after    time.Duration  // what the provider asked for
}

// send is one Complete under the call's time. The try says what came of it as far as the transport goes.
func (t *asking) send(ctx context.Context) (pipeline.Try, sent) {
	clock := t.c.cfg.Clock
	try := pipeline.Try{Call: t.q.Call.ID, Number: t.n, At: clock.Now(), Reask: t.reasks > 0}
	began := clock.Mono()
	limit := t.limit()
	timed, cancel := clock.WithTimeout(ctx, limit, errCallTimeout)
	defer cancel()
	response, err := complete(timed, t.c.cfg.Model, t.sending())
	s := sent{response: response, usage: response.Usage, cost: response.Cost}
	if err != nil {
		s = t.overtime(failureOf(timed, err, limit, t.c.cfg.Policy))
	}
	try.Millis = (clock.Mono() - began).Milliseconds()
	try.RequestID, try.Usage, try.Failure = response.RequestID, s.usage, s.failure
	try.Cost, try.Ran = t.c.info.Price.Of(try.Usage.Input, try.Usage.Output)+s.cost, t.ran(s.failure)
	switch s.failure.Kind {
	case pipeline.Ambiguous, pipeline.Cancelled, pipeline.Shutdown, pipeline.TimedOut:
		try.Unsure = true
	case pipeline.Broken:
		try.Unsure = !t.c.info.Handler // what a handler's try cost was told
	}
	return try, s
}

// complete is the model's Complete. A panic of an adapter is a failure of this call, not the end of the process.
func complete(ctx context.Context, m pipeline.Model, r pipeline.Request) (response pipeline.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			response, err = pipeline.Response{}, &pipeline.ModelError{Failure: broken("the model's adapter panicked", p)}
		}
	}()
	return m.Complete(ctx, r)
}

// check is the question's Check; bad is set if it panicked.
func (t *asking) check(text string) (clean string, repaired bool, bad pipeline.Failure, err error) {
	defer func() {
		if p := recover(); p != nil {
			bad = broken("the check of the answer panicked", p)
		}
	}()
	clean, repaired, err = t.q.Check(text)
	return clean, repaired, bad, err
}

// broken is for the deferred function that recovered p.
func broken(what string, p any) pipeline.Failure {
	f := pipeline.Fail(pipeline.Broken, "%s: %v", what, p)
	f.Detail = pipeline.Place()
	return f
}

// failureOf is the failure behind a Complete that returned an error.
func failureOf(ctx context.Context, err error, limit time.Duration, p pipeline.Policy) sent {
	var failed *pipeline.ModelError
	cause := context.Cause(ctx)
	switch {
	case errors.As(err, &failed):
		return sent{failure: failed.Failure, usage: failed.Usage, cost: failed.Cost, after: min(max(0, failed.RetryAfter), p.JobDeadline)}
	case errors.Is(cause, errCallTimeout):
		return sent{failure: pipeline.Fail(pipeline.Ambiguous, "no answer within %v", limit)}
	case errors.Is(cause, pipeline.ErrCancelled):
		return sent{failure: pipeline.Fail(pipeline.Cancelled, "aborted: the job was cancelled")}
	case cause != nil:
		return sent{failure: pipeline.Fail(pipeline.Shutdown, "aborted: %v", cause)}
	}
	return sent{failure: pipeline.Fail(pipeline.Ambiguous, "%v", err)}
}

// judge decides what a try means for its call. It may set the try's failure: an answer can be worth nothing.
func (t *asking) judge(ctx context.Context, try *pipeline.Try, s sent) result {
	if !s.failure.None() {
		return t.failed(ctx, s)
	}
	switch s.response.Stop {
	case pipeline.StopMaxTokens:
		try.Failure = pipeline.Fail(pipeline.Truncated, "the answer was cut at %d tokens", t.request.MaxTokens)
		return t.truncated(try.Failure)
	case pipeline.StopRefused:
		try.Failure = pipeline.Fail(pipeline.Refused, "the model refused to answer")
		return finished(pipeline.Answer{Failure: try.Failure})
	}
	clean, repaired, bad, err := t.check(s.response.Text)
	if !bad.None() {
		try.Failure = bad
		return finished(pipeline.Answer{Failure: bad})
	}
	if err != nil {
		try.Failure = pipeline.Fail(pipeline.Malformed, "%v", err)
		return t.malformed(try.Failure)
	}
	reply, err := t.c.store(ctx, pipeline.Reply{
		Key: t.q.Request.Key, Text: clean, Model: t.c.info.ID(), Usage: s.usage, Cost: try.Cost, Repaired: repaired,
		Job: t.a.Claim().Job, Task: t.a.Claim().ID, Call: t.q.Call.ID, Worker: t.a.Worker(), At: t.c.cfg.Clock.Now(),
	})
	if err != nil {
		return finished(pipeline.Answer{Failure: pipeline.Fail(pipeline.StoreFault, "%v", err), Defers: true})
	}
	t.a.Answered()
	t.c.door.works(ctx)
	return finished(pipeline.Answer{Reply: reply})
}

// failed decides about a try that brought no answer.
func (t *asking) failed(ctx context.Context, s sent) result {
	f, after := s.failure, s.after
	switch {
	case f.Kind == pipeline.Cancelled:
		return stop(pipeline.ErrCancelled)
	case f.Kind == pipeline.Shutdown:
		return stop(stopCause(ctx))
	case f.Kind == pipeline.TooLong && t.shrink():
		return result{}
	case f.Kind == pipeline.Throttled:
		t.c.door.throttled(ctx, after)
	case f.Kind == pipeline.Quota, f.Kind == pipeline.Rejected:
		wait := t.c.door.strike(ctx, t.a.Claim().Ref, f, after)
		return finished(pipeline.Answer{Failure: f, Defers: true, Wait: wait})
	}
	if f.Kind.Retryable() && t.n < t.c.cfg.Policy.MaxTries {
		wait := max(t.c.cfg.Policy.TryWait(t.n, t.c.cfg.Jitter()), pipeline.Spread(after, t.c.cfg.Jitter()))
		if t.waited+wait <= t.c.cfg.Policy.RetryWait {
			return result{wait: wait}
		}
	}
	answer := pipeline.Answer{Failure: f, Wait: after, Defers: f.Kind.Deferred()}
	if f.Kind == pipeline.Unavailable && !t.c.info.Handler {
		wait := t.c.door.strike(ctx, t.a.Claim().Ref, f, after)
		answer.Defers, answer.Wait = wait > 0, max(wait, after)
	}
	return finished(answer)
}

// truncated asks once more with more room, never the same request again.
func (t *asking) truncated(f pipeline.Failure) result {
	room := min(pipeline.Escalation*t.q.Request.MaxTokens, t.c.info.MaxOutput, t.room())
	if t.grown || room <= t.request.MaxTokens || t.n >= t.c.cfg.Policy.MaxTries {
		return finished(pipeline.Answer{Failure: f})
	}
	t.grown, t.request.MaxTokens = true, room
	return result{}
}

// room is how many tokens the model's context has beside the request.
func (t *asking) room() int {
	if t.c.info.ContextTokens <= 0 {
		return math.MaxInt
	}
	return t.c.info.ContextTokens - t.request.InputTokens()
}

// shrink makes the request fit the model's context: the input fits, and all of max_tokens beside it does not. A request
// that is no smaller is never sent again, nor is one whose input alone is too long.
func (t *asking) shrink() bool {
	room := t.room()
	if room < 1 || room >= t.request.MaxTokens || t.n >= t.c.cfg.Policy.MaxTries {
		return false
	}
	t.request.MaxTokens = room
	return true
}

// malformed asks again and says what was wrong. The request is made from the first one, so it never grows twice.
func (t *asking) malformed(f pipeline.Failure) result {
	if t.reasks >= t.c.cfg.Policy.MaxReasks || t.n >= t.c.cfg.Policy.MaxTries {
		return finished(pipeline.Answer{Failure: f})
	}
	t.reasks++
	t.request.Prompt = pipeline.Reask(t.q.Request.Prompt, f.Cause)
	return result{}
}

// pause waits without holding a slot.
func (t *asking) pause(ctx context.Context, wait time.Duration) error {
	if wait > 0 {
		t.unseat()
		t.waited += wait
		if err := t.sleep(ctx, wait); err != nil {
			return err
		}
	}
	if t.seated {
		return nil
	}
	if err := t.c.seat(ctx, t.a); err != nil {
		return err
	}
	t.seated = true
	return nil
}

// sleep waits, but not for an attempt that was stopped.
func (t *asking) sleep(ctx context.Context, wait time.Duration) error {
	return t.unlessStopped(ctx, func(ctx context.Context) error { return t.c.cfg.Clock.Sleep(ctx, wait) })
}

// admit takes capacity from the limiter and waits for it, but not for an attempt that was stopped.
func (t *asking) admit(ctx context.Context) (s slot, err error) {
	err = t.unlessStopped(ctx, func(ctx context.Context) error {
		s, err = t.c.door.admit(ctx, t.request)
		return err
	})
	if err != nil {
		s.refund(ctx, 0)
	}
	return s, err
}

// unlessStopped does what waits, under a context that ends when the attempt is stopped.
func (t *asking) unlessStopped(ctx context.Context, wait func(ctx context.Context) error) error {
	awake, cancel := context.WithCancel(ctx)
	defer cancel()
	var group pipeline.Group
	group.Go(func() {
		select {
		case <-t.a.Stopped():
			cancel()
		case <-awake.Done():
		}
	})
	err := wait(awake)
	cancel()
	group.Wait()
	if stopped := t.a.Stop(); stopped != nil {
		return stopped
	}
	return err
}

// came gives the slot to the next call while what came back is checked and stored, until done. When as much waits for
// that as may be in flight, the slot is kept: a slow store slows the asking down.
func (t *asking) came() (done func()) {
	t.c.unsaved <- struct{}{}
	t.unseat()
	return func() { <-t.c.unsaved }
}

func (t *asking) unseat() {
	if t.seated {
		<-t.c.slots
		t.seated = false
	}
}

// busy is a limiter without room: through no fault of the task.
func (t *asking) busy(err error) result {
	if cause := t.a.Stop(); cause != nil {
		return stop(cause)
	}
	return finished(pipeline.Answer{Failure: pipeline.Fail(pipeline.Busy, "the limiter of %s: %v", t.c.info.Name, err), Defers: true})
}

func stopCause(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return pipeline.ErrDraining
}
