package wiring_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// weighing counts what is logged.
type weighing struct {
	mu    sync.Mutex
	bytes int
}

func (w *weighing) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += len(line)
	return len(line), nil
}

func (w *weighing) weight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

func TestAtInfoAWorkerLogsDecisionsNotCalls(t *testing.T) {
	in(t, func(w *world) {
		w.model.react = failing(7, 0.05, pipeline.Throttled, pipeline.Unavailable)
		var log weighing
		w.start("worker", nil, func(c *wiring.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		})
		job := w.submit(text(chunks))
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, chunks)
		asked, _, _ := w.model.count()
		if logged := log.weight(); logged == 0 || logged > 200*asked {
			t.Errorf("got %d bytes of log for %d calls, want some and at most 200 a call", logged, asked)
		}
	})
}
