package call_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// An outage of the store costs no answer: what was paid for is held until the store takes it.
func TestAnswersAreHeldThroughAnOutage(t *testing.T) {
	out := func(until time.Duration) func(*bench) {
		return func(b *bench) {
			began := b.clock.Mono()
			b.model.react = func(string, int) reaction { return reaction{text: "ok", takes: time.Second} }
			b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
				if op.Name == "PutReply" && b.clock.Mono()-began < until {
					return fmt.Errorf("put: %w", pipeline.ErrBusy)
				}
				return do(ctx)
			})
		}
	}
	in(t, "of a minute: the answer is stored within two seconds of its end, and asked once", func(b *bench) {
		began := b.clock.Mono()
		for _, answer := range b.ask(1, "one call") {
			b.text(answer, "ok")
		}
		if took := b.clock.Mono() - began; took < time.Minute || took > time.Minute+2*time.Second {
			b.Errorf("stored after %v", took)
		}
		if n := len(b.model.sendings("")); n != 1 {
			b.Errorf("asked %d times", n)
		}
	}, out(time.Minute))
	in(t, "without an end: the attempt gives up, and says why", func(b *bench) {
		began := b.clock.Mono()
		answers := b.ask(1, "one call")
		if took := b.clock.Mono() - began; took > 2*time.Minute {
			b.Errorf("held for %v", took)
		}
		if len(answers) != 1 || answers[0].Failure.Kind != pipeline.StoreFault {
			b.Errorf("got %+v, want a fault of the store", answers)
		}
	}, out(time.Hour))
}
