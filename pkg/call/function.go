package call

import (
	"context"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// handler is a Function in the place of a model: the same stored answers, tries, caps, journal and money.
type handler struct {
	info pipeline.ModelInfo
	work pipeline.Function
}

// Handler is the model whose answers a function makes; id is its name@version.
func Handler(id string, work pipeline.Function) pipeline.Model {
	return handler{info: pipeline.Definition{Handler: id}.HandlerInfo(), work: work}
}

func (h handler) Info() pipeline.ModelInfo { return h.info }

// Complete runs the function once. An error of a context that is over is that of whoever ended it, whatever the
// function made of it.
func (h handler) Complete(ctx context.Context, r pipeline.Request) (response pipeline.Response, err error) {
	defer func() {
		if p := recover(); p != nil { // nobody knows what it had done: all that it may cost
			response, err = pipeline.Response{}, &pipeline.ModelError{Failure: broken("the handler panicked", p), Cost: r.Item.TryCost}
		}
	}()
	out, err := h.work(ctx, *r.Item)
	if out.Cost < 0 {
		err = fmt.Errorf("the handler said that the try cost %s: nothing costs less than nothing", out.Cost)
		out = pipeline.Output{}
	}
	cost := out.Cost
	if cost == 0 && !out.Free {
		cost = r.Item.TryCost
	}
	switch {
	case err == nil:
		return pipeline.Response{Text: out.Text, Stop: pipeline.StopEnd, Cost: cost}, nil
	case ctx.Err() != nil:
		return pipeline.Response{}, &dropped{context.Cause(ctx), cost}
	}
	failed := *pipeline.FunctionFailure(err)
	failed.Cost = cost
	if failed.Kind.Free() && failed.Kind != pipeline.Unavailable { // it says that nothing was done
		failed.Cost = out.Cost
	}
	return pipeline.Response{}, &failed
}

// sending is the request as it is sent: a handler is told which try of which attempt it is.
func (t *asking) sending() pipeline.Request {
	if t.request.Item == nil {
		return t.request
	}
	r, item, claim := t.request, *t.request.Item, t.a.Claim()
	item.Job, item.Task, item.Attempt, item.Generation, item.Try = claim.Job, claim.ID, claim.Attempts, claim.Generation, t.n
	r.Item = &item
	return r
}

// ran says that a try of a handler was begun and may have done something: it counts against the task's cap.
func (t *asking) ran(f pipeline.Failure) bool {
	return t.c.info.Handler && f.Kind == pipeline.Unavailable
}

// limit is how long one try may take.
func (t *asking) limit() time.Duration {
	if t.request.Timeout > 0 {
		return t.request.Timeout
	}
	return t.c.cfg.Policy.CallTimeout
}

// overtime names a handler's try that took too long: it is not tried again in this attempt, because nobody knows what
// it has done.
func (t *asking) overtime(s sent) sent {
	if t.c.info.Handler && s.failure.Kind == pipeline.Ambiguous {
		s.failure = pipeline.Fail(pipeline.TimedOut, "no end within %v: it was stopped", t.limit())
	}
	return s
}
