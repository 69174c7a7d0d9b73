package call_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// dearest is the most that one try of these tests' questions costs.
func (b *bench) dearest() pipeline.Money {
	return pipeline.TryCost(b.model.info, question("q").Request)
}

// ceiling replaces the budget by one with this ceiling.
func ceiling(tries float64) func(b *bench) {
	return func(b *bench) {
		b.store = memory.New()
		b.must(b.store.OpenBudget(b.ctx, theJob, pipeline.Money(tries*float64(b.dearest()))))
		b.cfg.Replies, b.cfg.Blobs, b.cfg.Budgets, b.cfg.Limits = b.store, b.store, b.store, b.store
	}
}

func TestPurse(t *testing.T) {
	in(t, "the dearest price of a try of each question is reserved before, and settled with what was spent", func(b *bench) {
		a := newAttempt(1)
		var open pipeline.Budget
		b.model.react = func(string, int) reaction {
			now := b.budget()
			b.model.mu.Lock()
			defer b.model.mu.Unlock()
			open = now
			return reaction{text: "ok", usage: pipeline.Usage{Input: 10, Output: 5}}
		}
		b.askAs(a, "q1", "q2", "q3")
		if len(open.Open) != 1 || open.Open[0].Amount != 3*b.dearest()+b.more("q1")*3 || open.Open[0].Stage != 1 || open.Open[0].Generation != 1 {
			b.Errorf("got %+v reserved while asking, want three tries for stage 1", open.Open)
		}
		want := 3 * b.model.info.Price.Of(10, 5)
		if got := b.budget(); got.Spent != want || len(got.Open) != 0 || got.Remaining != got.Ceiling-want {
			b.Errorf("got %+v, want %s spent and nothing open", got, want)
		}
	})
	in(t, "the next stage's reservation settles the one before, in the same write", func(b *bench) {
		a := newAttempt(1)
		b.Ask(b.ctx, a, []pipeline.Question{question("q1")})
		a.claim.Accepted = 1
		b.model.react = func(string, int) reaction {
			if open := b.budget().Open; len(open) != 1 || open[0].Stage != 2 {
				b.Errorf("got %+v open in stage 2, want its own alone", open)
			}
			return reaction{text: "ok"}
		}
		b.Ask(b.ctx, a, []pipeline.Question{question("q2")})
		b.Done(b.ctx, a)
		if open := b.budget().Open; len(open) != 0 {
			b.Errorf("got %+v open at the end", open)
		}
	})
	in(t, "a budget that is opened in the last of all rounds, after a busy store, is no reservation: a deferral", func(b *bench) {
		answer := b.one(1, "q")
		if !answer.Defers || answer.Failure.None() {
			b.Errorf("got %+v, want a deferral", answer)
		}
		b.sent(0)
	}, func(b *bench) {
		b.store = memory.New()
		b.cfg.Replies, b.cfg.Blobs, b.cfg.Limits = b.store, b.store, b.store
		b.cfg.Budgets = pipelinetest.Wrap(b.store, pipelinetest.LoseWrites(5, "Reserve"))
		b.cfg.OpenBudget = func(ctx context.Context, job pipeline.JobID) error {
			return b.store.OpenBudget(ctx, job, pipeline.Dollar)
		}
	})
	in(t, "nothing is reserved for what is stored", func(b *bench) {
		b.one(1, "q")
		before := b.budget()
		b.one(2, "q")
		if got := b.budget(); got.Spent != before.Spent || got.Remaining != before.Remaining {
			b.Errorf("got %+v, want %+v", got, before)
		}
	})
	in(t, "the ceiling is reached with nobody else spending: a stop", func(b *bench) {
		answer := b.one(1, "q")
		if !errors.Is(answer.Stop, pipeline.ErrCeiling) {
			b.Errorf("got %+v, want a stop at the ceiling", answer)
		}
		b.sent(0)
	}, ceiling(0.5))
	in(t, "too little is left while others have reserved: everybody's, to come back later", func(b *bench) {
		_, err := b.store.Reserve(b.ctx, theJob, pipeline.Reservation{Task: "work#00009", Generation: 1, Stage: 1, Amount: b.dearest()})
		b.must(err)
		b.kind(b.one(1, "q"), pipeline.Busy, true)
		b.sent(0)
	}, ceiling(1.5))
	in(t, "what others give back soon is waited for, and no longer than a call may wait", func(b *bench) {
		other := pipeline.Reservation{Task: "work#00009", Generation: 1, Stage: 1, Amount: b.dearest()}
		_, err := b.store.Reserve(b.ctx, theJob, other)
		b.must(err)
		began := time.Now()
		b.kind(b.one(1, "q"), pipeline.Busy, true)
		if waited, limit := time.Since(began), b.cfg.Policy.RetryWait; waited < limit || waited > limit+b.cfg.Policy.TryBackoff {
			b.Errorf("waited %s, want %s", waited, limit)
		}
		go func() {
			time.Sleep(3 * time.Second) // of the bubble's clock
			other.Amount = 0
			_, err := b.store.Settle(b.ctx, theJob, other)
			b.must(err)
		}()
		began = time.Now()
		b.text(b.one(2, "q"), `{"score": 1}`)
		if waited := time.Since(began); waited < 3*time.Second || waited > 5*time.Second {
			b.Errorf("waited %s, want until the other settled", waited)
		}
	}, ceiling(1.5))
	in(t, "a stop ends the wait for money", func(b *bench) {
		_, err := b.store.Reserve(b.ctx, theJob, pipeline.Reservation{Task: "work#00009", Generation: 1, Stage: 1, Amount: b.dearest()})
		b.must(err)
		a := newAttempt(1)
		go func() {
			time.Sleep(1500 * time.Millisecond) // of the bubble's clock
			a.halt(pipeline.ErrCancelled)
		}()
		began := time.Now()
		if answer := b.askAs(a, "q")[0]; !errors.Is(answer.Stop, pipeline.ErrCancelled) || time.Since(began) > 2*time.Second {
			b.Errorf("got %+v after %s, want the stop at once", answer, time.Since(began))
		}
		b.sent(0)
	}, ceiling(1.5))
	in(t, "two attempts whose last stages have what the other needs both go on", func(b *bench) {
		first, second := newAttempt(1), newAttempt(2)
		for n, a := range []*attempt{first, second} {
			b.Ask(b.ctx, a, []pipeline.Question{question(fmt.Sprintf("q%d", n))})
			a.claim.Accepted = 1
		}
		began := time.Now()
		var group pipeline.Group
		for n, a := range []*attempt{first, second} {
			group.Go(func() {
				for _, answer := range b.Ask(b.ctx, a, []pipeline.Question{question(fmt.Sprintf("r%d", n)), question(fmt.Sprintf("s%d", n))}) {
					b.text(answer, `{"score": 1}`)
				}
				b.Done(b.ctx, a)
			})
		}
		group.Wait()
		if waited := time.Since(began); waited > 5*time.Second {
			b.Errorf("waited %s for each other", waited)
		}
	}, ceiling(2.98))
	in(t, "retries are paid from what came back, then from another part; the ceiling stops them", func(b *bench) {
		a := newAttempt(1)
		answer := b.askAs(a, "q")[0]
		if !errors.Is(answer.Stop, pipeline.ErrCeiling) {
			b.Errorf("got %+v, want a stop at the ceiling", answer)
		}
		if got := b.budget(); got.Spent > got.Ceiling || len(got.Open) != 0 {
			b.Errorf("got %+v, want no more spent than the ceiling", got)
		}
		b.sent(2)
	}, script(reaction{err: errors.New("reset")}), ceiling(2.5))
	in(t, "a retry that finds the money in its neighbours' hands: later, not never", func(b *bench) {
		answers := b.ask(1, "a", "slow")
		b.kind(answers[0], pipeline.Busy, true)
		b.text(answers[1], "ok")
	}, ceiling(2.6), func(b *bench) {
		b.model.react = func(name string, n int) reaction {
			if name == "a" {
				return reaction{err: errors.New("reset")}
			}
			return reaction{text: "ok", takes: time.Minute}
		}
	})
	in(t, "free tries cost nothing", func(b *bench) {
		b.one(1, "q")
		if got := b.budget(); got.Spent != 0 {
			b.Errorf("got %s spent, want nothing", got.Spent)
		}
	}, script(failing(pipeline.Throttled, 0)))
	in(t, "what a failed try has used is spent", func(b *bench) {
		b.one(1, "q")
		if got, want := b.budget().Spent, b.model.info.Price.Of(50, 7); got != want {
			b.Errorf("got %s spent, want %s", got, want)
		}
	}, script(reaction{err: &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Invalid, "no"), Usage: pipeline.Usage{Input: 50, Output: 7}}}))
	in(t, "a job without a budget: nothing is asked, everybody's", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Busy, true)
		b.sent(0)
	}, func(b *bench) {
		b.store = memory.New()
		b.cfg.Budgets = b.store
	})
}

// more is by how much a question with a longer name is dearer than "q".
func (b *bench) more(name string) pipeline.Money {
	return pipeline.TryCost(b.model.info, question(name).Request) - b.dearest()
}

// TestCeiling spends under random faults and checks after each step that no more is spent than the ceiling.
func TestCeiling(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			b := &bench{T: t, ctx: t.Context(), model: newModel(), clock: pipeline.NewRealClock(), policy: pipeline.DefaultPolicy()}
			ceiling(1 + 30*random.Float64())(b)
			spend(b, random, seed)
		})
	}
}

func spend(b *bench, random *rand.Rand, seed uint64) {
	kinds := []pipeline.Kind{pipeline.Throttled, pipeline.Unavailable, pipeline.Ambiguous, pipeline.Malformed, pipeline.Truncated, pipeline.Refused, pipeline.Invalid}
	var billed pipeline.Money
	input := question("0.0.0").Request.InputTokens() // as estimated: a model that counts more may pass the ceiling once
	faults := func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
		b.model.mu.Lock()
		dice := random.Float64()
		b.model.mu.Unlock()
		if op.Write && dice < 0.05 {
			return pipelinetest.ErrLost
		}
		err := do(ctx)
		if dice > 0.9 {
			return pipelinetest.ErrLost
		}
		return err
	}
	b.cfg.Model, b.cfg.Clock, b.cfg.Policy, b.cfg.InFlight = b.model, b.clock, b.policy, 6
	b.ports(faults)
	b.model.react = func(_ string, n int) reaction {
		b.model.mu.Lock()
		defer b.model.mu.Unlock()
		r := reaction{text: "ok", takes: time.Duration(random.IntN(3000)) * time.Millisecond, usage: pipeline.Usage{Input: input, Output: 1 + random.IntN(100)}}
		if random.IntN(3) == 0 {
			switch kind := kinds[random.IntN(len(kinds))]; kind {
			case pipeline.Malformed:
				r.text = "bad"
			case pipeline.Truncated:
				r.stop = pipeline.StopMaxTokens
			default:
				r = failing(kind, 0)
				r.takes = time.Second
				billed += map[bool]pipeline.Money{true: b.model.info.Price.Of(input, 100)}[kind == pipeline.Ambiguous]
				return r
			}
		}
		billed += b.model.info.Price.Of(r.usage.Input, r.usage.Output)
		return r
	}
	var group pipeline.Group
	for n := range 4 {
		caller := *b
		caller.Caller = b.again()
		group.Go(func() {
			for round := range 6 {
				a := newAttempt(n)
				a.claim.Generation = int64(round + 1)
				var questions []pipeline.Question
				for i := range 4 {
					questions = append(questions, question(fmt.Sprintf("%d.%d.%d", n, round, i)))
				}
				caller.Ask(b.ctx, a, questions)
				caller.Done(b.ctx, a)
				if got := b.budget(); got.Spent > got.Ceiling || got.Remaining < 0 {
					b.Errorf("seed %d: got %+v: more was spent than the ceiling", seed, got)
				}
			}
		})
	}
	group.Wait()
	got := b.budget()
	var open pipeline.Money
	for _, r := range got.Open {
		open += r.Amount
	}
	if got.Spent+got.Remaining+open != got.Ceiling {
		b.Errorf("seed %d: got %+v: the sums do not add up", seed, got)
	}
	if billed > got.Ceiling {
		b.Errorf("seed %d: the model billed %s, the ceiling is %s", seed, billed, got.Ceiling)
	}
}
