package call_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// The slot of a try that came back goes to the next call at once. What that call must know stands by then, however slow
// the store is with everything else.
func TestNothingIsAskedBehindATryThatCostTooMuch(t *testing.T) {
	var ended sync.Map
	handler := func(b *bench) {
		b.model.info = pipeline.ModelInfo{Name: "hand", Version: "1", Handler: true, TokensPerMinute: 6000}
		b.cfg.Model = costly{b.model}
		b.cfg.InFlight = 1
		b.cfg.EndJob = func(_ context.Context, job pipeline.JobID, reason string) error {
			ended.Store(job, reason)
			return nil
		}
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Refund" {
				time.Sleep(time.Second)
			}
			return do(ctx)
		})
	}
	in(t, "one slot, three questions, a slow store: one is asked, the job is ended, and the answer is kept", func(b *bench) {
		answers := b.ask(1, "one", "two", "three")
		if sent := b.model.sendings(""); len(sent) != 1 {
			b.Fatalf("%d tries were sent, want the one that nothing was known before", len(sent))
		}
		stopped := 0
		for _, answer := range answers {
			if errors.Is(answer.Stop, pipeline.ErrOverspent) {
				stopped++
			} else {
				b.text(answer, "ok")
			}
		}
		if stopped != 2 {
			b.Errorf("%d questions were stopped, want 2", stopped)
		}
		if _, done := ended.Load(theJob); !done {
			b.Error("the job was not ended")
		}
	}, script(reaction{text: "ok"}), handler)
}

// costly is a model whose tries cost a dollar, whatever was said before.
type costly struct{ *model }

func (m costly) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	response, err := m.model.Complete(ctx, r)
	response.Cost = pipeline.Dollar
	return response, err
}
