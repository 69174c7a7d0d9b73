package call

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// share is what this process has of the limiter's line: units that were taken in blocks and not used yet. A block costs
// one write for many calls, and is rounded to the line's milliseconds once.
type share struct {
	turn chan struct{} // held by the one call that is next; the others wait behind it, in their order

	mu    sync.Mutex
	units int
	start pipeline.Instant // from when on they may be used
}

// blocks is how many blocks a burst has: a block is a quarter of a second of a quota with a burst of 10 s.
const blocks = 40

func newShare() share { return share{turn: make(chan struct{}, 1)} }

// take takes units if there are as many, and says from when on they may be used.
func (s *share) take(units int, now pipeline.Instant, burst time.Duration) (start pipeline.Instant, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.start) > burst { // the line does not reach back so far either
		s.units = 0
	}
	if s.units < units {
		return 0, false
	}
	s.units -= units
	return s.start, true
}

func (s *share) add(units int, start pipeline.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units += units
	s.start = max(s.start, start)
}

// give takes units back, and returns those that are more than two blocks: others may use them.
func (s *share) give(units, block int) (more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units += units
	more = max(0, s.units-2*block)
	s.units -= more
	return more
}

// lapse gives up what was taken before the model asked everybody to wait.
func (s *share) lapse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units = 0
}

// slot is capacity taken from the limiter.
type slot struct {
	d     *door
	units int
}

// errLineFull is a wait for one's turn that took too long.
var errLineFull = fmt.Errorf("%w: the line of this process is too long", pipeline.ErrBusy)

// admit takes a request's units from the limiter and waits until its turn: while the horizon allows its block, and half
// of what a stall may take behind the other calls of this process. Who waits here reserves nothing; who is deferred
// instead leaves the quota unused. Models without a quota have none.
func (d *door) admit(ctx context.Context, r pipeline.Request) (slot, error) {
	if d.info.TokensPerMinute <= 0 {
		return slot{}, nil
	}
	s := slot{d, r.InputTokens() + r.MaxTokens}
	ctx, cancel := d.clock.WithTimeout(ctx, d.policy.StallTimeout/2, errLineFull)
	defer cancel()
	select {
	case d.share.turn <- struct{}{}:
		defer func() { <-d.share.turn }()
	case <-ctx.Done():
		return slot{}, context.Cause(ctx)
	}
	start, ok := d.share.take(s.units, d.clock.Now(), d.policy.LimiterBurst)
	for ; !ok; start, ok = d.share.take(s.units, d.clock.Now(), d.policy.LimiterBurst) {
		if err := d.takeBlock(ctx, max(s.units, d.block())); err != nil {
			return slot{}, err
		}
	}
	if wait := start.Sub(d.clock.Now()); wait > 0 {
		if err := d.clock.Sleep(ctx, wait); err != nil {
			return s, err
		}
	}
	return s, nil
}

// takeBlock takes units of the shared line for the calls of this process.
func (d *door) takeBlock(ctx context.Context, units int) error {
	start, err := d.limits.TakeSlot(ctx, pipeline.SlotWrite{
		Model: d.info.ID(), Cost: d.time(units), Burst: d.policy.LimiterBurst, Horizon: d.policy.LimiterAhead, Now: d.clock.Now(),
	})
	if err != nil {
		return err
	}
	d.share.add(units, start)
	return nil
}

// block is how many units are taken at once.
func (d *door) block() int {
	return int(float64(d.info.TokensPerMinute) * d.policy.LimiterBurst.Minutes() / blocks)
}

// time is how much of the limiter's line so many units take.
func (d *door) time(units int) time.Duration {
	return time.Duration(float64(units) / float64(d.info.TokensPerMinute) * float64(time.Minute))
}

// refund gives back what was reserved and not used: to the next call of this process, and what is too much for those to
// everybody.
func (s slot) refund(ctx context.Context, used int) {
	if s.d == nil || used >= s.units {
		return
	}
	more := s.d.share.give(s.units-used, s.d.block())
	if more == 0 {
		return
	}
	_ = s.d.limits.Refund(context.WithoutCancel(ctx), s.d.info.ID(), s.d.time(more), s.d.policy.LimiterBurst, s.d.clock.Now()) // lost capacity, no harm
}
