package pipelinetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// Harness is one backend under test. Its store may be shared between subtests: the suite uses names of its own in each.
type Harness struct {
	Store pipeline.Store
	Blobs pipeline.Blobs

	// Raw puts a row with only these columns, by their JSON names; the rest is absent, not zero: as an older version
	// or a person would write it. It replaces the row whole and asks no condition.
	Raw func(t testing.TB, ref pipeline.Ref, columns map[string]any)
	// Delete removes a row behind everybody's back.
	Delete func(t testing.TB, ref pipeline.Ref)
	// Lag is for how long the due index may lag behind the rows; 0 if it never does.
	Lag time.Duration
}

// QueueConfig is the queue that the suite asks for.
type QueueConfig struct {
	Visibility  time.Duration // whole seconds
	MaxReceives int
	Now         func() pipeline.Instant // the suite's clock; a queue that has its own ignores it
}

// QueueHarness is one queue under test, empty.
type QueueHarness struct {
	Queue pipeline.Queue
	// Raw sends a body that need not be a message.
	Raw func(t testing.TB, body []byte)
	// Advance lets d pass: for a queue with its own clock, by waiting. Nil moves the suite's clock alone.
	Advance func(t testing.TB, d time.Duration)
	// Lag is how much later than it should a delivery may come back; 0 if it never does.
	Lag time.Duration
}

// Clock is a [pipeline.Clock] that moves only when it is told to; a sleep is over at once and moves it.
type Clock struct {
	mu  sync.Mutex
	now pipeline.Instant
}

// NewClock is a clock that stands at T0.
func NewClock() *Clock { return &Clock{now: T0} }

// Now is where the clock stands.
func (c *Clock) Now() pipeline.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Mono moves with Now.
func (c *Clock) Mono() time.Duration { return time.Duration(c.Now()) * time.Millisecond }

// Sleep moves the clock.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.Advance(d)
	return context.Cause(ctx)
}

// WithTimeout never times out.
func (c *Clock) WithTimeout(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

var _ pipeline.Clock = (*Clock)(nil)

// T0 is when every test begins: 2026-01-05 09:00:00 UTC.
const T0 pipeline.Instant = 1767603600000
