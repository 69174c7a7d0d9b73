package call_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// warm lets one call work, so that the model is known to be up.
func (b *bench) warm() {
	b.Helper()
	react := b.model.react
	b.model.react = func(string, int) reaction { return reaction{text: "ok"} }
	b.text(b.one(99, "warm"), "ok")
	b.model.react = react
}

func TestBreaker(t *testing.T) {
	unavailable := script(failing(pipeline.Unavailable, 0))
	in(t, "one task's failures do not open it while others' calls work: one bad document must not stop everybody", func(b *bench) {
		b.warm()
		for range 3 {
			b.kind(b.one(1, "q"), pipeline.Unavailable, false)
		}
		b.sent(1 + 12)
	}, unavailable)
	in(t, "the last task at work in an outage has nobody to strike with it: the breaker opens all the same", func(b *bench) {
		b.warm()
		time.Sleep(2 * time.Minute)
		b.kind(b.one(1, "q"), pipeline.Unavailable, true)
		b.kind(b.one(1, "q"), pipeline.Busy, true)
	}, unavailable)
	in(t, "two tasks' failures open it: then nobody asks until it closes, this process or another", func(b *bench) {
		b.warm()
		b.one(1, "a")
		answer := b.one(2, "b")
		b.kind(answer, pipeline.Unavailable, true)
		if answer.Wait <= 0 {
			b.Error("the second answer does not say how long the breaker is open")
		}
		before := len(b.model.sendings(""))
		other := *b
		other.Caller = b.again()
		for _, c := range []*bench{b, &other} {
			closed := c.one(3, "c")
			c.kind(closed, pipeline.Busy, true)
			if closed.Wait <= 0 || closed.Wait > time.Minute {
				b.Errorf("got the wait %v, want until the breaker closes", closed.Wait)
			}
			if told := closed.Failure.Cause; !strings.Contains(told, "no calls to") || !strings.Contains(told, answer.Failure.String()) {
				b.Errorf("got %q, want until when, and %q, which opened it", told, answer.Failure)
			}
		}
		b.sent(before)
		time.Sleep(answer.Wait + time.Millisecond)
		b.model.react = func(string, int) reaction { return reaction{text: "ok"} }
		b.text(b.one(3, "c"), "ok")
	}, unavailable)
	in(t, "a call that finds it open between two of its tries says why it is open", func(b *bench) {
		b.model.react = func(name string, _ int) reaction {
			r := failing(pipeline.Unavailable, 0)
			if name == "slow" {
				r.takes = 20 * time.Second
			}
			return r
		}
		answers := b.ask(1, "fast", "slow")
		b.kind(answers[0], pipeline.Unavailable, true)
		b.kind(answers[1], pipeline.Busy, true)
		if told := answers[1].Failure.Cause; !strings.Contains(told, answers[0].Failure.String()) {
			b.Errorf("got %q, want %q, which opened it", told, answers[0].Failure)
		}
	}, unavailable)
	in(t, "after its time one failure of anybody opens it again, until a call works", func(b *bench) {
		b.warm()
		b.one(1, "a")
		b.one(2, "b")
		time.Sleep(b.policy.BreakerOpen + time.Second)
		b.kind(b.one(1, "a"), pipeline.Unavailable, true) // though a call has worked within the window
		for range 5 {
			time.Sleep(10 * time.Minute)
			b.kind(b.one(1, "a"), pipeline.Unavailable, true)
		}
		time.Sleep(10 * time.Minute)
		b.model.react = func(string, int) reaction { return reaction{text: "ok"} }
		b.text(b.one(3, "c"), "ok")
		b.model.react = func(string, int) reaction { return failing(pipeline.Unavailable, 0) }
		time.Sleep(10 * time.Second)
		b.kind(b.one(1, "a"), pipeline.Unavailable, false)
	}, unavailable)
	in(t, "a strike that the store did not take: nobody knows whose fault it was", func(b *bench) {
		b.kind(b.one(1, "a"), pipeline.Unavailable, true)
	}, unavailable, func(b *bench) { b.ports(pipelinetest.LoseWrites(100, "Strike")) })
	in(t, "a strike that the store did not take: a quota still has to be waited for until its time", func(b *bench) {
		if answer := b.one(1, "a"); answer.Wait < 10*time.Minute {
			b.Errorf("got the wait %v, want the 10 minutes that the provider asked for", answer.Wait)
		}
	}, script(failing(pipeline.Quota, 10*time.Minute)), func(b *bench) { b.ports(pipelinetest.LoseWrites(100, "Strike")) })
	in(t, "it opens while others wait between tries: they do not try again", func(b *bench) {
		var group pipeline.Group
		for n := range 10 {
			group.Go(func() { b.one(n, fmt.Sprintf("q%d", n)) })
		}
		group.Wait()
		first := len(b.model.sendings(""))
		if first > 10*b.policy.MaxTries {
			b.Errorf("got %d tries", first)
		}
		var late pipeline.Group
		for n := range 10 {
			late.Go(func() { b.kind(b.one(n, fmt.Sprintf("r%d", n)), pipeline.Busy, true) })
		}
		late.Wait()
		b.sent(first)
	}, unavailable)
	in(t, "a call that works closes it", func(b *bench) {
		b.one(1, "a")
		b.one(2, "b")
		time.Sleep(time.Minute)
		b.model.react = func(string, int) reaction { return reaction{text: "ok"} }
		b.text(b.one(3, "c"), "ok")
		cooldown, err := b.store.Cooldown(b.ctx, b.model.info.ID())
		b.must(err)
		if len(cooldown.Strikes) != 0 {
			b.Errorf("got the strikes %v, want none", cooldown.Strikes)
		}
	}, unavailable)
	in(t, "rejected by two tasks opens it with the reason", func(b *bench) {
		b.one(1, "a")
		b.one(2, "b")
		answer := b.one(3, "c")
		b.kind(answer, pipeline.Busy, true)
		b.sent(2)
	}, script(failing(pipeline.Rejected, 0)))
	in(t, "pollers wait at the door until it closes, and no longer than they are asked to", func(b *bench) {
		b.one(1, "a")
		b.one(2, "b")
		began := b.clock.Mono()
		b.must(b.Wait(b.ctx))
		if waited := b.clock.Mono() - began; waited < 20*time.Second || waited > time.Minute {
			b.Errorf("waited %v, want about half a minute", waited)
		}
		b.one(1, "a")
		b.one(2, "b")
		ctx, cancel := context.WithCancelCause(b.ctx)
		cancel(pipeline.ErrDraining)
		if err := b.Wait(ctx); !errors.Is(err, pipeline.ErrDraining) {
			b.Errorf("got %v, want ErrDraining", err)
		}
	}, unavailable)
	var reads int
	in(t, "a process reads it once a second, however many tasks ask, and hears of another's strikes in that time", func(b *bench) {
		for n := range 20 {
			b.text(b.one(n, fmt.Sprintf("q%d", n)), `{"score": 1}`)
		}
		if reads != 1 {
			b.Errorf("20 tasks read the breaker %d times, want once", reads)
		}
		b.model.react = func(string, int) reaction { return failing(pipeline.Rejected, 0) }
		other := *b
		other.Caller = b.again()
		other.one(1, "a")
		other.one(2, "b")
		time.Sleep(b.policy.BreakerFresh)
		sent := len(b.model.sendings(""))
		b.kind(b.one(3, "c"), pipeline.Busy, true)
		b.sent(sent)
	}, func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Cooldown" {
				reads++
			}
			return do(ctx)
		})
	})
	in(t, "a breaker that cannot be read stops nobody", func(b *bench) {
		b.text(b.one(1, "q"), `{"score": 1}`)
	}, func(b *bench) { b.ports(pipelinetest.LoseAnswers(100, "Cooldown")) })
	in(t, "a storm of ten minutes: a trickle of calls, nothing counted against a task", func(b *bench) {
		began := b.clock.Mono()
		for b.clock.Mono()-began < 10*time.Minute {
			for n := range 20 {
				if answer := b.one(n, fmt.Sprintf("q%d", n)); !answer.Defers {
					b.Fatalf("got %+v, want a deferral", answer)
				}
			}
			time.Sleep(30 * time.Second) // the shortest wait of a deferral
		}
		if n := len(b.model.sendings("")); n > 20*4*20 {
			b.Errorf("got %d calls in the storm", n)
		}
	}, script(failing(pipeline.Throttled, 0)))
}

// window is the most units that were started within a minute.
func window(sent []sending, units func(sending) int) int {
	most := 0
	for i := range sent {
		sum := 0
		for _, s := range sent[i:] {
			if s.at-sent[i].at < time.Minute {
				sum += units(s)
			}
		}
		most = max(most, sum)
	}
	return most
}

func TestLimiter(t *testing.T) {
	const quota = 6000
	limited := func(b *bench) { b.model.info.TokensPerMinute, b.cfg.InFlight = quota, 20 }
	units := func(s sending) int { return s.InputTokens() + s.MaxTokens }
	in(t, "the quota is never exceeded, but for one burst, and the line is kept busy", func(b *bench) {
		callers := []*bench{b}
		for range 3 {
			other := *b
			other.Caller = b.again()
			callers = append(callers, &other)
		}
		var group pipeline.Group
		for n, c := range callers {
			group.Go(func() {
				for round := range 30 {
					var names []string
					for i := range 4 {
						names = append(names, fmt.Sprintf("%d.%d.%d", n, round, i))
					}
					c.ask(n, names...)
					_ = b.clock.Sleep(b.ctx, 3*time.Second)
				}
			})
		}
		group.Wait()
		sent := b.model.sendings("")
		slices.SortFunc(sent, func(x, y sending) int { return int(x.at - y.at) })
		if most := window(sent, units); most > quota+quota/6+200 {
			b.Errorf("got %d units within a minute, want at most %d and a burst of 10 s", most, quota)
		}
		span := sent[len(sent)-1].at - sent[0].at
		if used := float64(len(sent)*units(sent[0])) / (float64(quota) * span.Minutes()); used < 0.8 {
			b.Errorf("got %.0f %% of the quota used, want it kept busy", 100*used)
		}
	}, limited, script(reaction{text: "ok", usage: pipeline.Usage{Input: 12, Output: 100}, takes: time.Second}))
	in(t, "what was not used is given back", func(b *bench) {
		began := b.clock.Mono()
		for n := range 100 {
			b.text(b.one(1, fmt.Sprintf("q%d", n)), "ok")
		}
		if took := b.clock.Mono() - began; took > 30*time.Second {
			b.Errorf("100 calls of 20 units each took %v at %d units a minute, want about 20 s less the burst", took, quota)
		}
	}, limited, script(reaction{text: "ok", usage: pipeline.Usage{Input: 10, Output: 10}}))
	in(t, "a line that is full for longer than the horizon: everybody's, not this task's", func(b *bench) {
		var names []string
		for i := range 60 {
			names = append(names, fmt.Sprintf("q%d", i))
		}
		answers := b.ask(1, names...)
		answered, busy := 0, 0
		for _, answer := range answers {
			switch {
			case answer.Failure.None():
				answered++
			case answer.Failure.Kind == pipeline.Busy && answer.Defers:
				busy++
			}
		}
		if answered == 0 || answered+busy != 60 {
			b.Errorf("got %d answered and %d busy, want each to be one of them", answered, busy)
		}
		if open := b.budget().Open; len(open) != 0 {
			b.Errorf("got %v still reserved", open)
		}
	}, func(b *bench) { b.model.info.TokensPerMinute, b.cfg.InFlight = 600, 60 })
	in(t, "a throttle holds everybody back until the time that was told", func(b *bench) {
		other := *b
		other.Caller = b.again()
		var group pipeline.Group
		group.Go(func() { b.one(1, "a") })
		synctest.Wait()
		began := b.clock.Mono()
		other.one(2, "b")
		if at := b.model.sendings("b")[0].at - began; at < 10*time.Second {
			b.Errorf("another process was sent after %v, want not before 10 s", at)
		}
		group.Wait()
	}, limited, script(failing(pipeline.Throttled, 10*time.Second), reaction{text: "ok"}), func(b *bench) {
		b.model.react = func(name string, n int) reaction {
			if name == "a" && n == 1 {
				return failing(pipeline.Throttled, 10*time.Second)
			}
			return reaction{text: "ok"}
		}
	})
}
