package call_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestShare(t *testing.T) {
	var taken, refunded atomic.Int64
	counted := func(b *bench) {
		taken.Store(0)
		refunded.Store(0)
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			switch op.Name {
			case "TakeSlot":
				taken.Add(1)
			case "Refund":
				refunded.Add(1)
			}
			return do(ctx)
		})
	}
	limited := func(perMinute, inFlight int) func(b *bench) {
		return func(b *bench) { b.model.info.TokensPerMinute, b.cfg.InFlight = perMinute, inFlight }
	}
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("q", i))
		}
		return all
	}
	in(t, "one write of the limiter is for many calls", func(b *bench) {
		for _, answer := range b.ask(1, names(400)...) {
			b.text(answer, "ok")
		}
		if writes := taken.Load() + refunded.Load(); writes > 40 {
			b.Errorf("400 calls took %d writes of the limiter, want at most one for ten calls", writes)
		}
	}, counted, limited(1_000_000, 16), script(reaction{text: "ok", takes: time.Second, usage: pipeline.Usage{Input: 12, Output: 100}}))
	in(t, "who waits behind others in a line that moves is not deferred", func(b *bench) {
		began := b.clock.Mono()
		for _, answer := range b.ask(1, names(12)...) {
			b.text(answer, "ok")
		}
		if took := b.clock.Mono() - began; took < 2*b.policy.LimiterAhead {
			b.Errorf("it took %v, which is no long line", took)
		}
	}, limited(1200, 12), script(reaction{text: "ok", usage: pipeline.Usage{Input: 12, Output: 100}}))
	in(t, "a process that was throttled does not go on with what it has taken", func(b *bench) {
		var group pipeline.Group
		group.Go(func() { b.one(1, "a") })
		synctest.Wait()
		began := b.clock.Mono()
		b.one(2, "b")
		if waited := b.model.sendings("b")[0].at - began; waited < 10*time.Second {
			b.Errorf("the next call was sent after %v, want not before 10 s", waited)
		}
		group.Wait()
	}, limited(1_000_000, 4), func(b *bench) {
		b.model.react = func(name string, n int) reaction {
			if name == "a" && n == 1 {
				return failing(pipeline.Throttled, 10*time.Second)
			}
			return reaction{text: "ok"}
		}
	})
	in(t, "what a process cannot use soon is given to everybody, and what it took long ago is lost", func(b *bench) {
		b.ask(1, names(60)...)
		if refunded.Load() == 0 {
			b.Error("nothing was given back")
		}
		took := taken.Load()
		_ = b.clock.Sleep(b.ctx, time.Minute)
		b.one(1, "late")
		if taken.Load() == took {
			b.Error("a call used units that were taken a minute ago")
		}
	}, counted, limited(20_000, 60), script(reaction{text: "ok", takes: time.Second, usage: pipeline.Usage{Input: 12, Output: 1}}))
}
