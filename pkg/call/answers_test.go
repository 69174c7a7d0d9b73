package call_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestAnswers(t *testing.T) {
	in(t, "cut at max_tokens: one try with more room, then the cell fails, named truncated", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Truncated, false)
		sent := b.model.sendings("q")
		if len(sent) != 2 || sent[0].MaxTokens != 100 || sent[1].MaxTokens != 200 {
			b.Fatalf("got %d tries, want two, with 100 and 200", len(sent))
		}
	}, script(reaction{text: `{"sco`, stop: pipeline.StopMaxTokens}))
	in(t, "cut once: the answer with more room is kept under the first ask's key", func(b *bench) {
		b.text(b.one(1, "q"), "ok")
		b.text(b.one(2, "q"), "ok")
		b.sent(2)
	}, script(reaction{text: `{"sco`, stop: pipeline.StopMaxTokens}, reaction{text: "ok"}))
	in(t, "cut at the model's limit: not asked again", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Truncated, false)
		b.sent(1)
	}, script(reaction{stop: pipeline.StopMaxTokens}), func(b *bench) { b.model.info.MaxOutput = 100 })
	in(t, "malformed: at most two re-asks that say what was wrong, no longer the second time", func(b *bench) {
		a := newAttempt(1)
		b.kind(b.askAs(a, "q")[0], pipeline.Malformed, false)
		sent := b.model.sendings("")
		if len(sent) != 3 {
			b.Fatalf("got %d tries, want 3", len(sent))
		}
		if !strings.Contains(sent[1].Prompt, "is missing in bad 1") || !strings.Contains(sent[2].Prompt, "is missing in bad 2") || strings.Contains(sent[2].Prompt, "bad 1") {
			b.Errorf("got the re-asks %q and %q", sent[1].Prompt, sent[2].Prompt)
		}
		if len(sent[2].Prompt) != len(sent[1].Prompt) {
			b.Errorf("the prompt grew from %d to %d", len(sent[1].Prompt), len(sent[2].Prompt))
		}
		if a.tries[0].Reask || !a.tries[1].Reask || !a.tries[2].Reask || a.tries[0].Cost == 0 || a.unsent != 0 {
			b.Errorf("got the tries %+v, want two re-asks, all billed", a.tries)
		}
	}, func(b *bench) {
		b.model.react = func(_ string, n int) reaction { return reaction{text: fmt.Sprintf("bad %d", n)} }
	})
	in(t, "malformed once: the re-ask's answer is kept under the first ask's key", func(b *bench) {
		b.text(b.one(1, "q"), "ok")
		b.text(b.one(2, "q"), "ok")
		b.sent(2)
	}, script(reaction{text: "bad"}, reaction{text: "ok"}))
	in(t, "malformed, throttled and cut together stay under MaxTries", func(b *bench) {
		b.one(1, "q")
		b.sent(4)
	}, script(reaction{text: "bad"}, failing(pipeline.Throttled, 0), reaction{stop: pipeline.StopMaxTokens}, reaction{text: "bad"}))
	in(t, "a refusal: never again", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Refused, false)
		b.sent(1)
	}, script(reaction{stop: pipeline.StopRefused}))
	in(t, "answers come in the order of the questions", func(b *bench) {
		for i, answer := range b.ask(1, "a", "b", "c", "d") {
			b.text(answer, "answer to "+string(rune('a'+i)))
		}
	}, func(b *bench) {
		b.model.react = func(name string, _ int) reaction {
			return reaction{text: "answer to " + name, takes: time.Duration('z'-name[0]) * time.Second}
		}
	})
	in(t, "no more tries at once than InFlight, over all attempts", func(b *bench) {
		var group pipeline.Group
		for n := range 5 {
			group.Go(func() { b.ask(n, fmt.Sprintf("%da", n), fmt.Sprintf("%db", n), fmt.Sprintf("%dc", n)) })
		}
		group.Wait()
		if b.model.most != 8 {
			b.Errorf("got %d at once, want 8", b.model.most)
		}
		b.sent(15)
	}, script(reaction{text: "ok", takes: time.Second}))
}

func TestStops(t *testing.T) {
	in(t, "what MaySend says ends the call before it is sent, and costs nothing", func(b *bench) {
		a := newAttempt(1)
		a.halt(pipeline.ErrPaused)
		answer := b.askAs(a, "q")[0]
		if !errors.Is(answer.Stop, pipeline.ErrPaused) {
			b.Errorf("got %+v, want a stop", answer)
		}
		b.sent(0)
		if spent := b.budget(); spent.Spent != 0 || len(spent.Open) != 0 {
			b.Errorf("got %+v, want nothing spent or open", spent)
		}
	})
	in(t, "a stop ends the waiting between tries at once", func(b *bench) {
		a := newAttempt(1)
		began := b.clock.Mono()
		go func() {
			time.Sleep(3 * time.Second)
			a.halt(pipeline.ErrDraining)
		}()
		answer := b.askAs(a, "q")[0]
		if !errors.Is(answer.Stop, pipeline.ErrDraining) || answer.Tries != 1 {
			b.Errorf("got %+v, want a stop after one try", answer)
		}
		b.near("took", b.clock.Mono()-began, 3*time.Second)
	}, script(failing(pipeline.Throttled, 20*time.Second)))
	for _, inFlight := range []int{1, 2} {
		in(t, fmt.Sprintf("a stop ends the waiting for a slot and for another's flight, with %d in flight", inFlight), func(b *bench) {
			a := newAttempt(1)
			other := newAttempt(2)
			var group pipeline.Group
			group.Go(func() { b.askAs(other, "same") })
			time.Sleep(time.Second)
			began := b.clock.Mono()
			group.Go(func() {
				b.askAs(a, "same")
				b.near("took", b.clock.Mono()-began, 3*time.Second)
			})
			time.Sleep(3 * time.Second)
			a.halt(pipeline.ErrDraining)
			group.Wait()
		}, script(reaction{text: "ok", takes: time.Minute}), func(b *bench) { b.cfg.InFlight = inFlight })
	}
	in(t, "a stop ends the waiting for the limiter, which gets its units back", func(b *bench) {
		a := newAttempt(1)
		began := b.clock.Mono()
		go func() {
			time.Sleep(3 * time.Second)
			a.halt(pipeline.ErrDraining)
		}()
		b.askAs(a, "a", "b")
		b.near("took", b.clock.Mono()-began, 3*time.Second)
		b.sent(1)
	}, script(reaction{text: "ok", usage: pipeline.Usage{Input: 1000}}), func(b *bench) { b.model.info.TokensPerMinute, b.cfg.InFlight = 300, 1 })
	in(t, "a cancel aborts what is in flight: unsure, at the dearest price, and a stop", func(b *bench) {
		a := newAttempt(1)
		ctx, cancel := context.WithCancelCause(b.ctx)
		go func() {
			time.Sleep(3 * time.Second)
			cancel(pipeline.ErrCancelled)
		}()
		answer := b.Ask(ctx, a, []pipeline.Question{question("q")})[0]
		b.Done(ctx, a)
		if !errors.Is(answer.Stop, pipeline.ErrCancelled) || !a.tries[0].Unsure {
			b.Errorf("got %+v after %+v", answer, a.tries)
		}
		if budget := b.budget(); budget.Spent != pipeline.TryCost(b.model.info, question("q").Request) || len(budget.Open) != 0 {
			b.Errorf("got %+v, want the try counted as spent and nothing open", budget)
		}
	}, script(reaction{text: "ok", takes: time.Minute}))
}

func TestSameKey(t *testing.T) {
	for _, inFlight := range []int{1, 2, 8} {
		in(t, fmt.Sprintf("asked by three attempts at once with %d in flight: one call", inFlight), func(b *bench) {
			var group pipeline.Group
			for n := range 3 {
				group.Go(func() { b.text(b.one(n, "same"), "ok") })
			}
			group.Go(func() { b.text(b.one(7, "other"), "ok") })
			group.Wait()
			if n := len(b.model.sendings("same")); n != 1 {
				b.Errorf("asked %d times, want once", n)
			}
		}, script(reaction{text: "ok", takes: time.Second}), func(b *bench) { b.cfg.InFlight = inFlight })
	}
	in(t, "twice in one stage: one call", func(b *bench) {
		for _, answer := range b.ask(1, "same", "same", "same") {
			b.text(answer, "ok")
		}
		b.sent(1)
	}, script(reaction{text: "ok", takes: time.Second}), func(b *bench) { b.cfg.InFlight = 1 })
	in(t, "the first was answered, and the store is busy when the second looks: nobody pays again", func(b *bench) {
		var group pipeline.Group
		group.Go(func() { b.text(b.one(1, "same"), "ok") })
		synctest.Wait()
		group.Go(func() { b.text(b.one(3, "other"), "ok") }) // has the slot until the first is stored
		synctest.Wait()
		group.Go(func() { b.kind(b.one(2, "same"), pipeline.StoreFault, true) })
		group.Wait()
		b.sent(2)
	}, script(reaction{text: "ok", takes: time.Second}), func(b *bench) {
		b.cfg.InFlight = 1
		began := b.clock.Mono()
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Replies" && b.clock.Mono() > began {
				return pipeline.ErrBusy
			}
			return do(ctx)
		})
	})
	in(t, "the first fails: the second asks itself", func(b *bench) {
		var group pipeline.Group
		var first, second pipeline.Answer
		group.Go(func() { first = b.one(1, "same") })
		synctest.Wait()
		group.Go(func() { second = b.one(2, "same") })
		group.Wait()
		b.kind(first, pipeline.Refused, false)
		b.text(second, "ok")
		b.sent(2)
	}, script(reaction{stop: pipeline.StopRefused, takes: time.Second}, reaction{text: "ok"}))
}
