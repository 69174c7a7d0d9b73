package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// till is a model that fails in every way and counts what it was sent and what it bills, as a provider does: a call that
// was cut off is billed whole, though nobody on our side will ever know.
type till struct {
	*model
	share float64 // of the tries that fail

	mu     sync.Mutex
	random *rand.Rand
	billed pipeline.Money
	sent   map[string]int // tries that are not free, by chunk
}

func (m *till) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	m.mu.Lock()
	kind, long := m.fate(), m.random.IntN(30)
	m.mu.Unlock()
	usage := pipeline.Usage{Input: r.InputTokens(), Output: 5}
	most := pipeline.Usage{Input: usage.Input, Output: r.MaxTokens}
	m.asks(r, pipeline.Ambiguous, most) // until it is known better
	if err := m.w.clock.Sleep(ctx, time.Duration(100+100*long*long)*time.Millisecond); err != nil {
		return pipeline.Response{}, err
	}
	if ctx.Err() != nil || kind == pipeline.Ambiguous {
		return pipeline.Response{}, errors.New("connection reset")
	}
	m.takesBack(r, most)
	switch kind {
	case "":
		m.asks(r, kind, usage)
		return pipeline.Response{Text: `{"score": 0.9}`, Stop: pipeline.StopEnd, Usage: usage}, nil
	case pipeline.Truncated:
		m.asks(r, kind, most)
		return pipeline.Response{Text: `{"sco`, Stop: pipeline.StopMaxTokens, Usage: most}, nil
	case pipeline.Malformed:
		m.asks(r, kind, usage)
		return pipeline.Response{Text: `{"sco`, Stop: pipeline.StopEnd, Usage: usage}, nil
	case pipeline.Refused:
		m.asks(r, kind, usage)
		return pipeline.Response{Stop: pipeline.StopRefused, Usage: usage}, nil
	}
	return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(kind, "scripted"), RetryAfter: time.Duration(long) * time.Second}
}

func (m *till) fate() pipeline.Kind {
	if m.random.Float64() > m.share {
		return ""
	}
	kinds := []pipeline.Kind{
		pipeline.Ambiguous, pipeline.Ambiguous, pipeline.Throttled, pipeline.Unavailable, pipeline.Malformed, pipeline.Malformed,
		pipeline.Truncated, pipeline.Truncated, pipeline.Refused, pipeline.TooLong,
	}
	return kinds[m.random.IntN(len(kinds))]
}

func (m *till) asks(r pipeline.Request, kind pipeline.Kind, u pipeline.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.billed += m.Info().Price.Of(u.Input, u.Output)
	if !kind.Free() {
		m.sent[r.Shared]++
	}
}

func (m *till) takesBack(r pipeline.Request, u pipeline.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.billed -= m.Info().Price.Of(u.Input, u.Output)
	m.sent[r.Shared]--
}

// P3: whatever fails, dies, is put off, redriven, asked again or asked for more: no more is billed than the job's ceiling
// says, and no more is sent for a chunk than its row allows. It is the provider's count that is held to it, not ours.
func TestSpendNeverPassesWhatWasShown(t *testing.T) {
	for seed := range uint64(spendSeeds) {
		in(t, func(w *world) {
			r := rand.New(rand.NewPCG(seed, 17))
			m := &till{model: w.model, random: rand.New(rand.NewPCG(seed, 18)), sent: map[string]int{}, share: []float64{0.1, 0.4, 0.8, 0.97}[r.IntN(4)]}
			var dice sync.Mutex
			odds := func() float64 {
				dice.Lock()
				defer dice.Unlock()
				return r.Float64()
			}
			faults := func(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error {
				switch d := odds(); {
				case d < 0.01:
					return pipelinetest.ErrLost
				case d < 0.02:
					_ = do(ctx)
					return pipelinetest.ErrLost
				}
				return do(ctx)
			}
			most := pipeline.Money(0)
			if seed%3 == 0 {
				most = pipeline.Money(1+r.IntN(200)) * 1_000_000
			}
			start := func(n int) *process {
				return w.start(fmt.Sprint("worker-", n), faults, func(c *wiring.Config) { c.Model = m })
			}
			procs := []*process{start(0), start(1)}
			job := w.submit(text(4), func(s *submit.Submission) { s.MaxCost = most })
			var shown pipeline.Money
			redrives, paused := 0, false
			for n := 2; n < 200; n++ {
				time.Sleep(time.Duration(odds() * float64(time.Minute)))
				w.bounded(job.ID, m, shown, seed)
				switch d := odds(); {
				case t.Failed():
					return
				case w.job(job.ID).Status.Ended():
					if redrives == 3 {
						n = 200
						break
					}
					back, err := w.desk.Triage.Redrive(w.ctx, job.ID)
					shown += back.Cost
					if redrives++; err != nil {
						n = 200
					}
				case d < 0.25:
					i := n % len(procs)
					procs[i].kill()
					procs[i] = start(n)
				case d < 0.35:
					procs[n%len(procs)].freeze()
				case d < 0.6:
					procs[n%len(procs)].thaw()
				case d < 0.65 && !paused:
					_, err := w.desk.Submitter.Pause(w.ctx, job.ID)
					paused = err == nil
				case paused:
					_, _ = w.desk.Submitter.Resume(w.ctx, job.ID)
					paused = false
				}
			}
			time.Sleep(time.Hour)
			w.bounded(job.ID, m, shown, seed)
			w.sealed(job.ID, m, seed)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// bounded checks what holds at every moment.
func (w *world) bounded(id pipeline.JobID, m *till, redriven pipeline.Money, seed uint64) {
	w.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	budget, err := w.back.Store.Budget(w.ctx, id)
	if errors.Is(err, pipeline.ErrNotFound) {
		if m.billed > 0 {
			w.Errorf("seed %d: %s were billed without a budget", seed, m.billed)
		}
		return
	}
	w.must(err)
	plan, err := w.desk.Submitter.Plan(w.ctx, id)
	w.must(err)
	open := pipeline.Money(0)
	for _, r := range budget.Open {
		open += r.Amount
	}
	if budget.Spent+open+budget.Remaining != budget.Ceiling || budget.Remaining < 0 {
		w.Errorf("seed %d: spent %s, reserved %s and remaining %s are not the ceiling, %s", seed, budget.Spent, open, budget.Remaining, budget.Ceiling)
	}
	if budget.Ceiling > plan.Ceiling+redriven {
		w.Errorf("seed %d: the ceiling is %s, shown were %s and %s", seed, budget.Ceiling, plan.Ceiling, redriven)
	}
	if m.billed > budget.Spent+open {
		w.Errorf("seed %d: %s were billed, %s are spent or reserved of a ceiling of %s", seed, m.billed, budget.Spent+open, budget.Ceiling)
	}
	for _, row := range w.rows(id) {
		if row.ID.Kind() != pipeline.TaskWork {
			continue
		}
		mark := fmt.Sprintf("Clause number %d.", row.ID.Number()+1)
		for shared, n := range m.sent {
			if strings.Contains(shared, mark) && n > row.MaxTries {
				w.Errorf("seed %d: %s was sent %d times, allowed are %d", seed, row.ID, n, row.MaxTries)
			}
		}
	}
}

// sealed checks the end: nothing is open, and what we say was spent is no less than what was billed.
func (w *world) sealed(id pipeline.JobID, m *till, seed uint64) {
	w.Helper()
	budget, err := w.back.Store.Budget(w.ctx, id)
	if err != nil {
		return
	}
	if !w.job(id).Status.Ended() {
		return
	}
	if len(budget.Open) > 0 || budget.Spent > budget.Ceiling || m.billed > budget.Spent {
		w.Errorf("seed %d: %d reservations are open, %s are billed, %s spent of %s", seed, len(budget.Open), m.billed, budget.Spent, budget.Ceiling)
	}
}
