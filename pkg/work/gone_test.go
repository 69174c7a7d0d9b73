package work_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// A worker whose queue was removed would wait for ever, and look like one that has nothing to do.
func TestAQueueThatIsRemovedIsTold(t *testing.T) {
	missing := func(b *bench, from, until time.Duration, err error) *atomic.Int64 {
		var told atomic.Int64
		began := b.clock.Mono()
		w := b.host("worker", fails(pipeline.Invalid), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if at := b.clock.Mono() - began; op.Name == "Receive" && at >= from && at < until {
				return fmt.Errorf("receive: %w", err)
			}
			return do(ctx)
		}))
		w.cfg.Gone = func(err error) {
			if !errors.Is(err, pipeline.ErrNotMade) {
				b.Errorf("got %v", err)
			}
			told.Add(1)
		}
		w.run()
		return &told
	}
	in(t, "one that is not there any more", func(b *bench) {
		told := missing(b, time.Minute, time.Hour, pipeline.ErrNotMade)
		b.pass(time.Minute + 5*time.Second)
		if told.Load() != 0 {
			b.Errorf("told after 5 s")
		}
		b.pass(10 * time.Second)
		if told.Load() == 0 {
			b.Errorf("not told after 15 s")
		}
	})
	in(t, "one that was just made is not known everywhere at once", func(b *bench) {
		told := missing(b, 0, 5*time.Second, pipeline.ErrNotMade)
		b.pass(time.Hour)
		if told.Load() != 0 {
			b.Errorf("told of a queue that is there")
		}
	})
	in(t, "one that is busy, for however long, is there", func(b *bench) {
		told := missing(b, 0, time.Hour, pipeline.ErrBusy)
		b.pass(time.Hour)
		if told.Load() != 0 {
			b.Errorf("told of a queue that is busy")
		}
	})
}
