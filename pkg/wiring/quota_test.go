package wiring_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// documents submits so many equal documents at once and returns how long each took.
func documents(w *world, p *provider, n, chunks int) []time.Duration {
	jobs := make([]pipeline.JobID, n)
	for i := range jobs {
		jobs[i] = w.submit(strings.ReplaceAll(text(chunks), "The party", fmt.Sprintf("Party %d", i))).ID
	}
	took := make([]time.Duration, n)
	began := w.clock.Mono()
	for slices.Contains(took, 0) {
		time.Sleep(100 * time.Millisecond)
		if w.clock.Mono()-began > 2*time.Hour {
			w.Fatalf("not all have ended after 2 h: %v", took)
		}
		for i, id := range jobs {
			if took[i] == 0 && w.job(id).Status.Ended() {
				took[i] = w.clock.Mono() - began
			}
		}
	}
	for _, id := range jobs {
		w.ends(id, 0, pipeline.JobCompleted)
		for _, row := range w.rows(id) {
			if row.Deferrals > 0 {
				w.Errorf("%s was deferred %d times for a quota that all wait for", row.ID, row.Deferrals)
			}
		}
	}
	return took
}

func TestQuota(t *testing.T) {
	for _, perMinute := range []int{100_000, 400_000} {
		t.Run(fmt.Sprintf("%d tokens a minute are used, and nearly none asked for in vain", perMinute), func(t *testing.T) {
			in(t, func(w *world) {
				p := &provider{model: w.model, perMinute: perMinute}
				p.capacity = float64(p.perMinute) / 60 * (w.policy.LimiterBurst + time.Second).Seconds()
				p.level, p.at = p.capacity, w.clock.Mono()
				for n := range 4 {
					w.start(fmt.Sprint("worker-", n), nil, func(c *wiring.Config) { c.Model, c.InFlight, c.Claims = p, 32, 16 })
				}
				took := documents(w, p, 10, 22)
				allowed := float64(p.perMinute)*slices.Max(took).Minutes() + p.capacity
				share, refused := float64(p.used)/allowed, float64(p.refused)/float64(p.sent)
				t.Logf("quota: %d tokens a minute: used %.1f %% in %v, %.2f %% of %d tries refused, slowest / fastest of %d documents %.2f",
					perMinute, 100*share, slices.Max(took).Round(time.Second), 100*refused, p.sent, len(took),
					float64(slices.Max(took))/float64(slices.Min(took)))
				if share < 0.95 || refused > 0.02 {
					t.Errorf("got %.3f of the quota used and %.3f of the tries refused, want at least 0.95 and at most 0.02", share, refused)
				}
			})
		})
	}
}
