package pipeline

import (
	"context"
	"sync"
	"time"
)

// Clock is a worker's time: steps have no other. A simulation gives each worker its own, skewed or stepped.
type Clock interface {
	Now() Instant                                     // wall clock
	Mono() time.Duration                              // monotonic, from any beginning
	Sleep(ctx context.Context, d time.Duration) error // context.Cause(ctx) if it ends first
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
}

// RealClock is this machine's.
type RealClock struct{ begin time.Time }

// NewRealClock is a clock whose monotonic time begins now.
func NewRealClock() RealClock { return RealClock{begin: time.Now()} }

// Now is the wall clock.
func (RealClock) Now() Instant { return At(time.Now()) }

// Mono is the time since the clock was made.
func (c RealClock) Mono() time.Duration { return time.Since(c.begin) }

// Sleep waits for d.
func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// WithTimeout is context.WithTimeoutCause.
func (RealClock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}

// Group starts goroutines and waits for all of them: the one way in which steps start any.
type Group struct{ wg sync.WaitGroup }

// Go starts f.
func (g *Group) Go(f func()) { g.wg.Go(f) }

// Wait returns when all have returned.
func (g *Group) Wait() { g.wg.Wait() }
