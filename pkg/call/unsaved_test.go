package call_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/pkg/pipelinetest"
)

func TestSlotsAreNotHeldForTheStore(t *testing.T) {
	const inFlight = 8
	slowStore := func(b *bench) {
		b.cfg.InFlight = inFlight
		b.model.react = func(string, int) reaction { return reaction{text: "ok", takes: time.Second} }
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "PutReply" {
				time.Sleep(10 * time.Second)
			}
			return do(ctx)
		})
	}
	in(t, "calls begin while the answers before them are stored, until as many wait for that as may be in flight", func(b *bench) {
		began := b.clock.Mono()
		var names []string
		for n := range 3 * inFlight {
			names = append(names, fmt.Sprint("call ", n))
		}
		for _, answer := range b.ask(1, names...) {
			b.text(answer, "ok")
		}
		for i, sent := range b.model.sendings("") {
			want := []time.Duration{0, time.Second, 11 * time.Second}[i/inFlight]
			if got := sent.at - began; got != want {
				b.Errorf("call %d was sent after %v, want %v", i, got, want)
			}
		}
		if b.model.most != inFlight {
			b.Errorf("%d calls were in flight at once, want %d", b.model.most, inFlight)
		}
	}, slowStore)
}
