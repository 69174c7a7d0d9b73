package call

import (
	"context"
	"errors"
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
		return finished(pipeline.Answer{Failure: t.c.door.refusal(), Defers: true, Wait: wait})
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
	if err := t.maySend(ctx); err != nil {
		t.purse.give(most, 0)
		slot.refund(ctx, 0)
		return stop(err)
	}
	t.n++
	try, sent := t.send(ctx)
	if t.c.info.Handler && try.Cost > most {
		t.overspent(most, try.Cost) // before another may have the slot
	}
	defer t.came()()
	t.c.meter.count(t.request, try.Usage.Input)
	slot.refund(ctx, try.Usage.Input+try.Usage.Output)
	if try.Free() {
		t.a.Unsent()
	}
	if try.Unsure {
		try.Cost = max(most, try.Cost)
	}
	t.purse.give(most, try.Cost)
	t.cost += try.Cost
	r := t.judge(ctx, &try, sent)
	t.a.Record(try)
	if err := t.mayCost(ctx); err != nil && !r.done {
		return stop(err)
	}
	return r
}

// maySend must return nil right before each try.
func (t *asking) maySend(ctx context.Context) error {
	if err := t.mayCost(ctx); err != nil {
		return err
	}
	return t.a.MaySend(ctx)
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
		s.cost = max(s.cost, toldCost(err))
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
