package pipelinetest

import (
	"testing"
	"time"
)

// TestQueue holds a queue to the promises of [pipeline.Queue], one subtest per promise. open makes an empty queue.
func TestQueue(t *testing.T, open func(t *testing.T, cfg QueueConfig) QueueHarness) {
	for _, promise := range queuePromises {
		t.Run(promise.says, func(t *testing.T) {
			clock := NewClock()
			cfg := promise.cfg
			cfg.Now = clock.Now
			h := open(t, cfg)
			if h.Advance == nil {
				h.Advance = func(_ testing.TB, d time.Duration) { clock.Advance(d) }
			}
			promise.holds(t, h)
		})
	}
}

type queuePromise struct {
	says  string
	cfg   QueueConfig
	holds func(t *testing.T, h QueueHarness)
}

var queuePromises []queuePromise
