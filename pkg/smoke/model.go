package smoke

import (
	"context"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// modelName is the offline model's, as jobs name it whose chunks are the canary's own: no worker of the stack has a
// model of this name, so none can take them, whatever it asks otherwise.
const modelName = "holdfast-smoke"

// own is a model under the canary's own name.
type own struct{ pipeline.Model }

// Own is a model under the canary's own name.
func Own(m pipeline.Model) pipeline.Model { return own{m} }

// Info describes the model.
func (o own) Info() pipeline.ModelInfo {
	info := o.Model.Info()
	info.Name, info.TokensPerMinute = modelName, 0
	return info
}

// witness is a model that knows what it was asked, and when.
type witness struct {
	pipeline.Model
	clock pipeline.Clock

	mu    sync.Mutex
	asked map[pipeline.ReplyKey]int
	last  time.Duration // when the last one was asked, by the monotonic clock
}

func newWitness(m pipeline.Model, clock pipeline.Clock) *witness {
	return &witness{Model: m, clock: clock, asked: map[pipeline.ReplyKey]int{}}
}

// Complete asks once.
func (w *witness) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	w.mu.Lock()
	w.asked[r.Key]++
	w.last = w.clock.Mono()
	w.mu.Unlock()
	return w.Model.Complete(ctx, r)
}

// count is how often it was asked, how many of those were asked before, and when the last was.
func (w *witness) count() (asked, again int, last time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.asked {
		asked += n
		again += n - 1
	}
	return asked, again, w.last
}
