package call

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/pkg/pipeline"
)

// door is what stands between a process and a model: the shared limiter and the shared breaker.
type door struct {
	limits pipeline.Limits
	clock  pipeline.Clock
	info   pipeline.ModelInfo
	policy pipeline.Policy
	struck atomic.Bool  // the breaker was struck, by whomever, since a call of this process last worked
	until  atomic.Int64 // the breaker is open until then, as this process last heard
	worked atomic.Int64 // when a call of this process last worked, by the monotonic clock; 0 = none has
	share  share

	mu     sync.Mutex
	known  pipeline.Cooldown // the breaker as last read, or as this process left it
	looked time.Duration     // when that was, by the monotonic clock
	heard  bool              // that was ever
}

// cooldown is the breaker: read once per BreakerFresh and process, not once per task and stage.
func (d *door) cooldown(ctx context.Context) (pipeline.Cooldown, error) {
	began := d.clock.Mono()
	d.mu.Lock()
	known, fresh := d.known, d.heard && began-d.looked < d.policy.BreakerFresh
	d.mu.Unlock()
	if fresh {
		return known, nil
	}
	c, err := d.limits.Cooldown(ctx, d.info.ID())
	if err == nil {
		d.learn(c, began)
	}
	return c, err
}

// learn takes what was heard of the breaker at that time, unless something was heard since.
func (d *door) learn(c pipeline.Cooldown, at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at >= d.looked {
		d.known, d.looked, d.heard = c, at, true
	}
}

// openFor is how long the breaker stays open, as this process last heard.
func (d *door) openFor() time.Duration {
	return max(0, pipeline.Instant(d.until.Load()).Sub(d.clock.Now()))
}

// refusal is why it is open, as this process last heard.
func (d *door) refusal() pipeline.Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known.Until == 0 { // closed by another process since
		return pipeline.Fail(pipeline.Busy, "the breaker of %s is open", d.info.Name)
	}
	return d.known.Refusal(d.info.Name)
}

// closed says why no call may start now, and for how long; nil if the breaker is closed. A handler has no breaker:
// one may serve many commands, and what one of them meets says nothing about the next.
func (d *door) closed(ctx context.Context) (*pipeline.Failure, time.Duration) {
	if d.info.Handler {
		return nil, 0
	}
	cooldown, err := d.cooldown(ctx)
	if err != nil {
		return nil, 0 // an unreadable breaker stops nobody: the calls themselves tell
	}
	now := d.clock.Now()
	if cooldown.Until != 0 {
		d.struck.Store(true)
	}
	if !cooldown.IsOpen(now) {
		return nil, 0
	}
	f := cooldown.Refusal(d.info.Name)
	return &f, cooldown.Until.Sub(now)
}

// Wait waits until the model's breaker is closed and a slot is free: pollers do so before they receive, so that no
// worker sits on chunks that another has the time for.
func (c *Caller) Wait(ctx context.Context) error {
	for {
		closed, wait := c.door.closed(ctx)
		if closed == nil {
			return c.room(ctx)
		}
		if err := c.cfg.Clock.Sleep(ctx, min(wait, c.cfg.Policy.BreakerOpen)); err != nil {
			return err
		}
	}
}

// room waits until a slot is free, and leaves it free.
func (c *Caller) room(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case c.slots <- struct{}{}:
		<-c.slots
		return context.Cause(ctx)
	}
}

// throttled tells everybody to wait.
func (d *door) throttled(ctx context.Context, after time.Duration) {
	if d.info.Handler || d.info.TokensPerMinute <= 0 && after == 0 {
		return // nothing is shared: the call's own backoff is enough
	}
	if after == 0 {
		after = d.policy.ThrottlePause
	}
	d.share.lapse()
	_ = d.limits.Penalise(ctx, d.info.ID(), d.clock.Now().Add(after)) // those who do not hear of it are told by the model
}

// strike tells the breaker of a failure that may be everybody's, and returns how long it is open now; 0 if it is not.
// A breaker that cannot be told counts as open: nobody knows whose fault it was. So does a model that is down when no
// call of this process has worked within the window: the last task at work in an outage has nobody to strike with it,
// and so a breaker whose time is over opens again with the first failure, until a call works.
func (d *door) strike(ctx context.Context, task pipeline.Ref, f pipeline.Failure, after time.Duration) time.Duration {
	if d.info.Handler {
		return 0
	}
	now := d.clock.Now()
	d.struck.Store(true)
	cooldown, err := d.limits.Strike(ctx, pipeline.Strike{
		Model: d.info.ID(), Task: task, Reason: f, Now: now, Window: d.policy.BreakerWindow,
		Until: now.Add(max(after, d.policy.BreakerOpen)), Open: f.Kind == pipeline.Quota || f.Kind == pipeline.Unavailable && d.silent(),
	})
	if err != nil {
		return max(after, d.policy.BreakerOpen)
	}
	d.learn(cooldown, d.clock.Mono())
	if !cooldown.IsOpen(now) {
		return 0
	}
	d.until.Store(int64(cooldown.Until))
	return cooldown.Until.Sub(now)
}

// silent says that no call of this process has worked within the window.
func (d *door) silent() bool {
	worked := time.Duration(d.worked.Load())
	return worked == 0 || d.clock.Mono()-worked > d.policy.BreakerWindow
}

// works forgets the strikes after a call that worked.
func (d *door) works(ctx context.Context) {
	d.worked.Store(int64(max(1, d.clock.Mono())))
	if d.struck.Swap(false) {
		d.until.Store(0)
		d.learn(pipeline.Cooldown{}, d.clock.Mono())
		_ = d.limits.CloseBreaker(ctx, d.info.ID()) // it closes by itself at its time
	}
}

func backoff(n int) time.Duration { return 50 * time.Millisecond << n }
