package call_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// near checks a time to the millisecond.
func (b *bench) near(what string, got, want time.Duration) {
	b.Helper()
	if (got - want).Abs() > time.Millisecond {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// gaps are the times between the tries of a call.
func (b *bench) gaps(of string) []time.Duration {
	var gaps []time.Duration
	sent := b.model.sendings(of)
	for i := 1; i < len(sent); i++ {
		gaps = append(gaps, sent[i].at-sent[i-1].at)
	}
	return gaps
}

func (b *bench) sent(want int) {
	b.Helper()
	if got := len(b.model.sendings("")); got != want {
		b.Errorf("got %d tries at the model, want %d", got, want)
	}
}

func TestTries(t *testing.T) {
	in(t, "a stored reply is used and nothing is sent", func(b *bench) {
		b.text(b.one(1, "q"), `{"score": 1}`)
		other := *b
		other.Caller = b.again()
		answer := other.one(2, "q")
		b.text(answer, `{"score": 1}`)
		if !answer.Reused {
			b.Error("the second answer does not say that it is reused")
		}
		b.sent(1)
	})
	for _, kind := range []pipeline.Kind{pipeline.Throttled, pipeline.Unavailable, pipeline.Ambiguous} {
		in(t, string(kind)+" every time: exactly MaxTries tries after half of 1, 2 and 4 s", func(b *bench) {
			a := newAttempt(1)
			answer := b.askAs(a, "q")[0]
			b.kind(answer, kind, kind != pipeline.Ambiguous) // unavailable to all who have asked: nobody's fault
			b.sent(b.policy.MaxTries)
			for i, gap := range b.gaps("q") {
				b.near("gap", gap, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}[i])
			}
			if answer.Tries != 4 || len(a.tries) != 4 || a.taken != 4 {
				b.Errorf("got %d tries in the answer, %d in the journal, %d taken, want 4", answer.Tries, len(a.tries), a.taken)
			}
			for i, try := range a.tries {
				if try.Number != i+1 || try.Failure.Kind != kind || try.Unsure != (kind == pipeline.Ambiguous) {
					b.Errorf("got try %+v, want number %d, %s", try, i+1, kind)
				}
			}
			free := map[pipeline.Kind]int{pipeline.Throttled: 4, pipeline.Unavailable: 4}[kind]
			if a.unsent != free {
				b.Errorf("got %d given back, want %d", a.unsent, free)
			}
		}, script(failing(kind, 0)))
		in(t, string(kind)+" once, then an answer", func(b *bench) {
			b.text(b.one(1, "q"), "ok")
			b.sent(2)
		}, script(failing(kind, 0), reaction{text: "ok"}))
	}
	for _, kind := range []pipeline.Kind{pipeline.TooLong, pipeline.Refused, pipeline.Invalid} {
		in(t, string(kind)+": never again, and the cell's", func(b *bench) {
			b.kind(b.one(1, "q"), kind, false)
			b.sent(1)
		}, script(failing(kind, time.Second)))
	}
	for _, kind := range []pipeline.Kind{pipeline.Quota, pipeline.Rejected} {
		in(t, string(kind)+": never again, and everybody's", func(b *bench) {
			answer := b.one(1, "q")
			b.kind(answer, kind, true)
			b.sent(1)
			cooldown, err := b.store.Cooldown(b.ctx, b.model.info.ID())
			b.must(err)
			if open := cooldown.IsOpen(b.clock.Now()); open != (kind == pipeline.Quota) || len(cooldown.Strikes) != 1 {
				b.Errorf("got open %v, struck by %v: a stated quota opens the breaker at once, a configuration error needs two tasks", open, cooldown.Strikes)
			}
			if kind == pipeline.Quota {
				b.near("wait", answer.Wait, time.Hour)
			}
		}, script(failing(kind, time.Hour)))
	}
	in(t, "no answer in the call's time: ambiguous, and perhaps billed", func(b *bench) {
		a := newAttempt(1)
		began := b.clock.Mono()
		b.text(b.askAs(a, "q")[0], "ok")
		b.near("took", b.clock.Mono()-began, b.policy.CallTimeout+500*time.Millisecond)
		if try := a.tries[0]; try.Failure.Kind != pipeline.Ambiguous || !try.Unsure || try.Cost != pipeline.TryCost(b.model.info, question("q").Request) {
			b.Errorf("got %+v, want ambiguous, unsure, at the dearest price", try)
		}
	}, script(reaction{text: "late", takes: time.Hour}, reaction{text: "ok"}))
	in(t, "an unknown error of the adapter: ambiguous", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Ambiguous, false)
	}, script(reaction{err: errors.New("connection reset")}))
	in(t, "a panic of the adapter: broken, perhaps billed, not tried again, and the process lives", func(b *bench) {
		a := newAttempt(1)
		b.kind(b.askAs(a, "q")[0], pipeline.Broken, false)
		if !a.tries[0].Unsure || b.budget().Spent != a.tries[0].Cost || a.tries[0].Cost == 0 {
			b.Errorf("got %+v and %s spent, want the dearest price", a.tries[0], b.budget().Spent)
		}
		b.sent(1)
	}, script(reaction{text: "model panics"}))
	in(t, "a panic of the check: broken, and the process lives", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Broken, false)
		b.sent(1)
	}, script(reaction{text: "panic"}))
}

func TestCaseM01RetryAfter(t *testing.T) {
	in(t, "is never undercut, and wake-ups spread over a fifth of it", func(b *bench) {
		jitter := 0.0
		b.cfg.Jitter = nil
		var names []string
		for n := range 20 {
			names = append(names, fmt.Sprintf("q%02d", n))
		}
		_ = jitter
		b.ask(1, names...)
		least, most := time.Hour, time.Duration(0)
		for _, name := range names {
			gap := b.gaps(name)[0]
			least, most = min(least, gap), max(most, gap)
		}
		if least < 20*time.Second {
			b.Errorf("the first came back after %v, want never before 20 s", least)
		}
		if most > 24*time.Second {
			b.Errorf("the last came back after %v, want within a fifth", most)
		}
		if most-least < 2*time.Second {
			b.Errorf("they came back within %v of each other, want them spread over 20 %% of the wait", most-least)
		}
	}, func(b *bench) {
		b.cfg.Jitter, b.cfg.InFlight = nil, 20
		b.model.react = func(_ string, n int) reaction {
			if n == 1 {
				return failing(pipeline.Throttled, 20*time.Second)
			}
			return reaction{text: "ok"}
		}
	})
	for name, after := range map[string]time.Duration{"15 minutes": 15 * time.Minute, "just above the budget": 30 * time.Second} {
		in(t, "of "+name+": handed over with that wait, at once, not counted", func(b *bench) {
			began := b.clock.Mono()
			answer := b.one(1, "q")
			b.kind(answer, pipeline.Throttled, true)
			if answer.Wait != after {
				b.Errorf("got the wait %v, want %v", answer.Wait, after)
			}
			b.near("took", b.clock.Mono()-began, 0)
			b.sent(1)
		}, script(failing(pipeline.Throttled, after)))
	}
	for name, after := range map[string]time.Duration{"as long as there are nanoseconds": math.MaxInt64, "negative": -time.Hour, "0": 0, "as negative as it gets": math.MinInt64} {
		in(t, "that is "+name+": no overflow, no busy loop", func(b *bench) {
			answer := b.one(1, "q")
			b.kind(answer, pipeline.Throttled, true)
			for _, gap := range b.gaps("q") {
				if gap < 500*time.Millisecond {
					b.Errorf("tried again after %v", gap)
				}
			}
			if after > 0 {
				b.sent(1)
			}
			wait := pipeline.Next(b.policy, pipeline.Standing{Attempts: 1, Stages: 1}, pipeline.Ending{Outcome: pipeline.Deferral, Failure: answer.Failure, RetryAfter: answer.Wait}, b.clock.Now(), 0.9).Wait
			if answer.Wait < 0 || wait < 0 || answer.Wait > 30*24*time.Hour {
				b.Errorf("got the wait %v, and %v for the task", answer.Wait, wait)
			}
		}, script(failing(pipeline.Throttled, after)))
	}
	in(t, "several waits of one call add up to no more than RetryWait", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Throttled, true)
		b.sent(3) // 11 s and 11 s; a third would be 33
	}, script(failing(pipeline.Throttled, 10*time.Second)))
	in(t, "waiting holds no slot: others go on", func(b *bench) {
		began := b.clock.Mono()
		b.ask(1, "slow", "a", "b", "c")
		for _, name := range []string{"a", "b", "c"} {
			if at := b.model.sendings(name)[0].at - began; at > 5*time.Second {
				b.Errorf("%s was sent after %v", name, at)
			}
		}
	}, func(b *bench) {
		b.cfg.InFlight = 1
		b.model.react = func(name string, n int) reaction {
			if name == "slow" && n == 1 {
				return failing(pipeline.Throttled, 20*time.Second)
			}
			return reaction{text: "ok", takes: time.Second}
		}
	})
}

func TestKeeping(t *testing.T) {
	in(t, "an answer is stored before it is used", func(b *bench) {
		b.text(b.one(1, "q"), "ok")
	}, script(reaction{text: "ok"}), func(b *bench) {
		b.cfg.Observe = func(_ pipeline.Ref, answer pipeline.Answer) {
			key := pipeline.KeyOf("tenant", "scripted@1", 0, question("q").Request)
			if found, _, _ := b.store.Replies(b.ctx, []pipeline.ReplyKey{key}); found[key].Text != "ok" {
				b.Errorf("the answer was used before it was stored")
			}
		}
	})
	in(t, "the loser of a race uses the winner's", func(b *bench) {
		b.text(b.one(1, "q"), "winner")
	}, script(reaction{text: "loser"}), func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "PutReply" {
				_, err := b.store.PutReply(ctx, pipeline.Reply{Key: pipeline.ReplyKey(op.On), Text: "winner", Worker: "other"})
				b.must(err)
			}
			return do(ctx)
		})
	})
	in(t, "a large answer is stored beside the item; a loser never changes the winner's", func(b *bench) {
		winner, loser := strings.Repeat("w", 400_000), strings.Repeat("l", 400_000)
		b.model.react = func(_ string, n int) reaction {
			return reaction{text: []string{winner, loser}[n-1], takes: time.Duration(n) * time.Second}
		}
		other := *b
		other.Caller = b.again()
		var group pipeline.Group
		answers := make([]pipeline.Answer, 2)
		group.Go(func() { answers[0] = b.one(1, "q") })
		synctest.Wait()
		group.Go(func() { answers[1] = other.one(2, "q") })
		group.Wait()
		b.text(answers[0], winner)
		b.text(answers[1], winner)
		b.text(b.one(3, "q"), winner)
	})
	for _, op := range []string{"PutReply", "Reserve", "Settle", "Replies", "PutBlob"} {
		in(t, "the answer of the first "+op+" was lost: asked once", func(b *bench) {
			answer := b.one(1, "q")
			if op == "PutBlob" || op == "Replies" {
				if !answer.Defers && answer.Failure.Kind != "" {
					b.Errorf("got %+v, want an answer or a deferral", answer)
				}
			} else if !answer.Failure.None() {
				b.Errorf("got %s, want an answer", answer.Failure)
			}
			if len(b.model.sendings("")) > 1 {
				b.Error("asked twice")
			}
			if open := b.budget().Open; len(open) != 0 {
				b.Errorf("got %v still reserved", open)
			}
		}, script(reaction{text: strings.Repeat("x", 400_000)}), func(b *bench) { b.ports(pipelinetest.LoseAnswers(1, op)) })
	}
	in(t, "a store that fails after a paid answer: a deferral, no second ask in this attempt", func(b *bench) {
		answer := b.one(1, "q")
		b.kind(answer, pipeline.StoreFault, true)
		b.sent(1)
		if b.budget().Spent == 0 {
			b.Error("the answer was paid for and is not counted as spent")
		}
	}, func(b *bench) { b.ports(pipelinetest.LoseWrites(100, "PutReply")) })
	in(t, "a store that fails after a paid answer: who waits for the same key does not pay for it either", func(b *bench) {
		answers := b.ask(1, "same", "same")
		b.kind(answers[0], pipeline.StoreFault, true)
		b.kind(answers[1], pipeline.StoreFault, true)
		b.sent(1)
	}, script(reaction{text: "ok", takes: time.Second}), func(b *bench) { b.ports(pipelinetest.LoseWrites(100, "PutReply")) })
	in(t, "stored replies that cannot be read: a deferral, nothing is asked", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.StoreFault, true)
		b.sent(0)
	}, func(b *bench) { b.ports(pipelinetest.LoseAnswers(100, "Replies")) })
}
