package call

import (
	"context"
	"math"

	"holdfast/pkg/pipeline"
)

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
	if f.Kind == pipeline.Unavailable {
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

func stopCause(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return pipeline.ErrDraining
}
