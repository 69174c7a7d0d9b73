package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// model is the model as one process reaches it. Its answers depend on the question alone; how it fails, on the seed.
type model struct{ p *process }

var _ pipeline.Model = (*model)(nil)

// Info describes the model. A world with a quota shares a limiter.
func (m *model) Info() pipeline.ModelInfo { return m.p.w.Spec.model() }

// Complete is one try: a parking point where it is sent, one where it comes back, and time in between.
func (m *model) Complete(ctx context.Context, r pipeline.Request) (response pipeline.Response, err error) {
	w := m.p.w
	cell := cellOf(r)
	x := &waiter{name: "Complete", on: cell.String(), write: true}
	try := w.audit.Asked(m.p.name, w.trueTime(), &m.p.policy, cell.Chunk, cell.Call, r)
	reached := false
	err = m.p.park(ctx, x, func(ctx context.Context, x *waiter) error {
		reached = true
		takes := w.between(x, 50*time.Millisecond, w.Spec.longestCall())
		response, err = m.outcome(x, r)
		if x.fault == HangAnswer {
			takes = 10 * m.p.policy.CallTimeout
		}
		price := m.Info().Price
		billed := price.Of(response.Usage.Input, response.Usage.Output)
		y := w.sched.add(&waiter{p: m.p, name: "answer", on: x.on, timer: true, due: w.sched.time() + takes})
		select {
		case <-y.wake:
			if m.p.isDead() {
				w.audit.Unanswered(try, w.trueTime(), billed)
				return m.p.gone(ctx)
			}
		case <-ctx.Done():
			w.sched.remove(y)
			w.audit.Unanswered(try, w.trueTime(), billed)
			return context.Cause(ctx)
		}
		if x.fault == CutAnswer {
			w.audit.Unanswered(try, w.trueTime(), billed)
			return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Ambiguous, "the stream was cut")}
		}
		w.audit.Answered(try, w.trueTime(), response, price, err)
		return err
	})
	if !reached {
		w.audit.Unsent(try, w.trueTime())
	}
	return response, err
}

// answerTo depends on the question, but for the words in which it says why: a model never says the same twice.
func answerTo(r pipeline.Request, try int) string {
	n := mix(uint64(len(r.Prompt))*31 + uint64(len(r.Shared)))
	for _, c := range []byte(r.Shared + r.Prompt) {
		n = mix(n ^ uint64(c))
	}
	if n%2 == 0 {
		return `{"score": 0.2, "findings": []}`
	}
	return fmt.Sprintf(`{"score": 0.7, "findings": [{"severity": "low", "title": "Payment", "quote": "what is due", "rationale": "r%d", "suggestion": "s", "confidence": 0.5}]}`, try)
}

// outcome is what the model makes of a request.
func (m *model) outcome(x *waiter, r pipeline.Request) (pipeline.Response, error) {
	w := m.p.w
	failed := func(kind pipeline.Kind, after time.Duration, format string, args ...any) (pipeline.Response, error) {
		return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(kind, format, args...), RetryAfter: after}
	}
	now := w.sched.time()
	full := pipeline.Response{
		Text: answerTo(r, w.events()), Stop: pipeline.StopEnd,
		Usage: pipeline.Usage{Input: r.InputTokens(), Output: 20 + int(mix(uint64(len(r.Prompt)))%100)},
	}
	switch {
	case x.fault == ThrottleModel || now < w.stormUntil:
		return failed(pipeline.Throttled, w.between(x, 0, 4*time.Second), "slow down")
	case x.fault == FailModel || now < w.outageUntil:
		return failed(pipeline.Unavailable, 0, "overloaded")
	case x.fault == QuotaUsed:
		return failed(pipeline.Quota, time.Minute, "the quota of this minute is used up")
	case x.fault == MalformAnswer:
		full.Text = `{"score": "high"`
	case x.fault == TruncateAnswer:
		full.Text, full.Stop, full.Usage.Output = full.Text[:5], pipeline.StopMaxTokens, r.MaxTokens
	case x.fault == RefuseAnswer:
		full.Text, full.Stop = "", pipeline.StopRefused
	}
	return full, nil
}

// cell is one question of the plan, as far as its words tell.
type cell struct {
	Chunk int
	Call  string
}

func (c cell) String() string { return fmt.Sprintf("chunk %d %s", c.Chunk, c.Call) }

// cellOf reads which question it is from its words: the document and the prompts of a world name them.
func cellOf(r pipeline.Request) cell {
	c := cell{Chunk: -1}
	if _, rest, found := strings.Cut(r.Shared, "Clause "); found {
		_, _ = fmt.Sscanf(rest, "%d", &c.Chunk)
	}
	if _, rest, found := strings.Cut(r.Prompt, "Question "); found {
		var stage, call int
		_, _ = fmt.Sscanf(rest, "%d.%d", &stage, &call)
		c.Call = fmt.Sprintf("s%dc%d", stage, call)
	}
	return c
}
