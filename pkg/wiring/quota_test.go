package wiring_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// provider is a model with a quota: a bucket of tokens that fills by the minute. A call takes its input and all of its
// max_tokens, and gives back what it did not write; one that finds too little is refused.
type provider struct {
	*model
	perMinute int
	capacity  float64

	mu      sync.Mutex
	level   float64
	at      time.Duration
	used    int // tokens of answers
	sent    int
	refused int
}

func (p *provider) Info() pipeline.ModelInfo {
	info := p.model.Info()
	info.TokensPerMinute = p.perMinute
	return info
}

func (p *provider) take(tokens int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.w.clock.Mono()
	p.level = min(p.capacity, p.level+float64(p.perMinute)*(now-p.at).Minutes())
	p.at = now
	p.sent++
	if p.level < float64(tokens) {
		p.refused++
		return false
	}
	p.level -= float64(tokens)
	return true
}

func (p *provider) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	const output = 40
	input := r.InputTokens() * 9 / 10 // the estimate is never under
	if !p.take(input + r.MaxTokens) {
		return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Throttled, "429: too many tokens")}
	}
	response, err := p.model.Complete(ctx, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level += float64(r.MaxTokens - output)
	p.used += input + output
	response.Usage = pipeline.Usage{Input: input, Output: output}
	return response, err
}

// documents submits so many equal documents at once, if busy when all workers have another, and returns how long each
// took. Those that find idle workers are not equal: the first has its chunks claimed before the others have theirs.
func documents(w *world, n, chunks int, busy bool) []time.Duration {
	var jobs []pipeline.JobID
	if busy {
		jobs = append(jobs, w.submit(party("first", 70)).ID)
		time.Sleep(2 * time.Second)
	}
	for i := range n {
		jobs = append(jobs, w.submit(party(fmt.Sprint(i), chunks)).ID)
	}
	took := took(w, jobs)
	for _, id := range jobs {
		w.ends(id, 0, pipeline.JobCompleted)
		for _, row := range w.rows(id) {
			if row.Deferrals > 0 {
				w.Errorf("%s was deferred %d times for a quota that all wait for", row.ID, row.Deferrals)
			}
		}
	}
	return took[len(took)-n:]
}

// quota is what ten documents made of a quota.
type quota struct {
	share   float64 // of it that was used
	refused float64 // of the tries
	sent    int
	all     time.Duration
	took    []time.Duration
}

func (q quota) ratio() float64 { return float64(slices.Max(q.took)) / float64(slices.Min(q.took)) }

// underQuota lets four workers share a quota. Those that are busy have another document when the ten come.
func underQuota(t *testing.T, perMinute int, busy bool) (q quota) {
	in(t, func(w *world) {
		p := &provider{model: w.model, perMinute: perMinute}
		p.capacity = float64(perMinute) / 60 * (w.policy.LimiterBurst + time.Second).Seconds()
		p.level, p.at = p.capacity, w.clock.Mono()
		for n := range 4 {
			w.start(fmt.Sprint("worker-", n), nil, func(c *wiring.Config) { c.Model, c.InFlight, c.Claims = p, 32, 16 })
		}
		began := w.clock.Mono()
		q.took = documents(w, 10, 22, busy)
		q.all, q.sent = w.clock.Mono()-began, p.sent
		q.share = float64(p.used) / (float64(perMinute)*q.all.Minutes() + p.capacity)
		q.refused = float64(p.refused) / float64(p.sent)
	})
	return q
}

func TestQuota(t *testing.T) {
	for _, perMinute := range []int{100_000, 400_000} {
		t.Run(fmt.Sprintf("%d tokens a minute are used, and nearly none asked for in vain", perMinute), func(t *testing.T) {
			idle, q := underQuota(t, perMinute, false), underQuota(t, perMinute, true)
			t.Logf("quota: %d tokens a minute: used %.1f %% in %v, %.2f %% of %d tries refused, slowest / fastest of %d documents %.2f; %.2f where they find idle workers",
				perMinute, 100*q.share, q.all.Round(time.Second), 100*q.refused, q.sent, len(q.took), q.ratio(), idle.ratio())
			for _, q := range []quota{idle, q} {
				if q.share < 0.95 || q.refused > 0.02 {
					t.Errorf("got %.3f of the quota used and %.3f of the tries refused, want at least 0.95 and at most 0.02", q.share, q.refused)
				}
			}
			if q.ratio() > 1.25 {
				t.Errorf("got %v, want the slowest at most 1.25 times the fastest", q.took)
			}
		})
	}
}
