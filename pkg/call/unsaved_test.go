package call_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipelinetest"
)

// A worker's death costs what was sent and not stored. A slot that is given away while its answer is stored makes that
// more than what may be in flight, so one in eight may be.
func TestSlotsAreNotHeldForTheStore(t *testing.T) {
	const inFlight = 8
	var sent, stored, most atomic.Int64
	slowStore := func(b *bench) {
		b.cfg.InFlight = inFlight
		b.model.react = func(string, int) reaction {
			most.Store(max(most.Load(), sent.Add(1)-stored.Load()))
			return reaction{text: "ok", takes: time.Second}
		}
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name != "PutReply" {
				return do(ctx)
			}
			time.Sleep(10 * time.Second)
			defer stored.Add(1)
			return do(ctx)
		})
	}
	in(t, "a call begins while the answer before it is stored, and one more than may be in flight is not stored at once", func(b *bench) {
		began := b.clock.Mono()
		var names []string
		for n := range 3 * inFlight {
			names = append(names, fmt.Sprint("call ", n))
		}
		for _, answer := range b.ask(1, names...) {
			b.text(answer, "ok")
		}
		if at := b.model.sendings("")[inFlight].at - began; at != time.Second {
			b.Errorf("the first call after those of all slots was sent after %v, want one second, when the first answers came", at)
		}
		if most.Load() != inFlight+1 || b.model.most != inFlight {
			b.Errorf("%d calls were sent and not stored, %d in flight at once, want %d and %d", most.Load(), b.model.most, inFlight+1, inFlight)
		}
	}, slowStore)
}
