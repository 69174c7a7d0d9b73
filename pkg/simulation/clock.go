package simulation

import (
	"context"
	"time"

	"holdfast/pkg/pipeline"
)

// epoch is when every world begins.
const epoch pipeline.Instant = 1_780_000_000_000

// clock is one process's time: the world's, by its own skew. Every wait is a parking point.
type clock struct{ p *process }

var _ pipeline.Clock = clock{}

// Now is the wall clock of the process.
func (c clock) Now() pipeline.Instant { return epoch.Add(c.p.w.sched.time() + c.p.skew) }

// Mono is not skewed, and no step moves it.
func (c clock) Mono() time.Duration { return c.p.w.sched.time() }

// Sleep parks until d is over.
func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := c.p.gone(ctx); err != nil || d <= 0 {
		return err
	}
	w := &c.p.w.sched
	x := w.add(&waiter{p: c.p, name: "sleep", timer: true, due: w.time() + d})
	select {
	case <-x.wake:
		return c.p.gone(ctx)
	case <-ctx.Done():
		w.remove(x)
		return c.p.gone(ctx)
	}
}

// WithTimeout ends the context after d, by a timer of the world's.
func (c clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	w := &c.p.w.sched
	timed, cancel := context.WithCancelCause(ctx)
	x := w.add(&waiter{p: c.p, name: "timeout", timer: true, due: w.time() + d, fire: func() { cancel(cause) }})
	return timed, func() {
		w.remove(x)
		cancel(context.Canceled)
	}
}

// worldClock is the queues' and the auditor's: true time.
type worldClock struct{ s *scheduler }

func (c worldClock) Now() pipeline.Instant { return epoch.Add(c.s.time()) }
