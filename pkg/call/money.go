package call

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/pkg/pipeline"
)

// meter knows how many more input tokens the provider has counted than were estimated, so that what is reserved is
// what will be billed.
type meter struct{ ratio atomic.Uint64 } // bits of a float64; 0 = never more than estimated

// most is the most that one try of a request costs, by what was counted so far.
func (m *meter) most(info pipeline.ModelInfo, r pipeline.Request) pipeline.Money {
	if info.Handler {
		return pipeline.TryCost(info, r)
	}
	estimated := r.InputTokens()
	if ratio := math.Float64frombits(m.ratio.Load()); ratio > 1 {
		estimated = int(math.Ceil(ratio * float64(estimated)))
	}
	return info.Price.Of(estimated, r.MaxTokens)
}

// count takes what the provider counted for a request.
func (m *meter) count(r pipeline.Request, counted int) {
	ratio := float64(counted) / float64(max(1, r.InputTokens()))
	for {
		old := m.ratio.Load()
		if ratio <= max(1, math.Float64frombits(old)) || m.ratio.CompareAndSwap(old, math.Float64bits(ratio)) {
			return
		}
	}
}

// purses are the reservations of attempts: one stage's is settled in the write that reserves the next one's.
type purses struct {
	mu   sync.Mutex
	open map[pipeline.Fence]*purse
}

// purse is what one attempt has reserved for one stage. A try takes its dearest price and gives the rest back; what
// is left pays for retries, and only when it is empty another part is reserved.
type purse struct {
	c     *Caller
	job   pipeline.JobID
	mu    sync.Mutex
	open  []pipeline.Reservation // with Amount reserved
	free  pipeline.Money
	taken pipeline.Money // by tries that have not come back
	spent pipeline.Money
	topUp chan struct{} // held while another part is reserved; no mutex, since that may wait
}

// openPurse reserves the dearest price of one try of each open question, and settles the stage before.
func (c *Caller) openPurse(ctx context.Context, a pipeline.Attempt, questions []pipeline.Question, open []int) (*purse, error) {
	claim := a.Claim()
	var need pipeline.Money
	for _, i := range open {
		need += c.meter.most(c.info, questions[i].Request)
	}
	c.purses.mu.Lock()
	before := c.purses.open[claim.Fence()]
	c.purses.mu.Unlock()
	p := &purse{c: c, job: claim.Job, topUp: make(chan struct{}, 1)}
	part := pipeline.Reservation{Task: claim.ID, Generation: claim.Generation, Stage: claim.Accepted + 1, Amount: need}
	err := p.reserve(ctx, part, before.settlement()...)
	if errors.Is(err, errOthers) {
		c.Done(ctx, a) // what the stage before left is what another may be waiting for
		err = p.await(ctx, a, part)
	}
	if err != nil {
		return nil, err
	}
	c.purses.mu.Lock()
	c.purses.open[claim.Fence()] = p
	c.purses.mu.Unlock()
	return p, nil
}

// errOthers says that others hold money that they may give back.
var errOthers = fmt.Errorf("others have money reserved: %w", pipeline.ErrBusy)

// await reserves a part that others stand in the way of, again and again for as long as a call may wait between its
// tries: they settle when their stage is over, and then it is known at once whether anything is left. A deferral would
// come back only after its time.
func (p *purse) await(ctx context.Context, a pipeline.Attempt, part pipeline.Reservation) error {
	policy := p.c.cfg.Policy
	for waited := time.Duration(0); ; waited += policy.TryBackoff {
		err := p.reserve(ctx, part)
		if !errors.Is(err, errOthers) || waited >= policy.RetryWait || a.Stop() != nil {
			return err
		}
		if err := p.c.cfg.Clock.Sleep(ctx, policy.TryBackoff); err != nil {
			return err
		}
	}
}

// reserve takes a part, the same again while the store is busy: a reservation is recognised by its key.
func (p *purse) reserve(ctx context.Context, part pipeline.Reservation, settle ...pipeline.Reservation) error {
	var err error
	for n := range storeTries {
		var budget pipeline.Budget
		budget, err = p.c.cfg.Budgets.Reserve(ctx, p.job, part, settle...)
		switch {
		case err == nil:
			p.mu.Lock()
			p.open = append(p.open, part)
			p.free += part.Amount
			p.mu.Unlock()
			return nil
		case errors.Is(err, pipeline.ErrCeiling):
			return p.tooLittle(part, budget, len(settle), err)
		case errors.Is(err, pipeline.ErrNotFound):
			err = p.c.cfg.OpenBudget(ctx, p.job)
		}
		if err != nil && !errors.Is(err, pipeline.ErrBusy) {
			return err
		}
		if sleep := p.c.cfg.Clock.Sleep(ctx, backoff(n)); sleep != nil {
			return sleep
		}
	}
	if err == nil { // the last round opened the budget, and none is left to reserve in
		err = pipeline.ErrBusy
	}
	return err
}

// tooLittle tells money that others have reserved, or that tries of our own have in hand, and may give back, from a
// ceiling that was reached.
func (p *purse) tooLittle(part pipeline.Reservation, budget pipeline.Budget, settling int, err error) error {
	p.mu.Lock()
	own, taken := len(p.open)+settling, p.taken
	p.mu.Unlock()
	if taken > 0 {
		return fmt.Errorf("%s are needed, %s remain, and tries in flight have %s: %w", part.Amount, budget.Remaining, taken, pipeline.ErrBusy)
	}
	if len(budget.Open) > own {
		return fmt.Errorf("%s are needed, %s remain, and %d of %w", part.Amount, budget.Remaining, len(budget.Open)-own, errOthers)
	}
	return fmt.Errorf("%w: %s of %s remain, the next tries need %s", err, budget.Remaining, budget.Ceiling, part.Amount)
}

// take takes the dearest price of a try, reserving another part when the purse is empty.
func (p *purse) take(ctx context.Context, amount pipeline.Money) error {
	select {
	case p.topUp <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.topUp }()
	part, enough := p.takeFree(amount)
	if enough {
		return nil
	}
	part.Part++
	part.Amount = 4 * amount
	if err := p.reserve(ctx, part); err != nil {
		part.Amount = amount // the last of the money
		if err := p.reserve(ctx, part); err != nil {
			return err
		}
	}
	p.takeFree(amount)
	return nil
}

// takeFree takes from what is free; if that is too little, it returns the last part that was reserved.
func (p *purse) takeFree(amount pipeline.Money) (last pipeline.Reservation, enough bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free < amount {
		return p.open[len(p.open)-1], false
	}
	p.free -= amount
	p.taken += amount
	return last, true
}

// give ends what take began: the try really cost spent.
func (p *purse) give(taken, spent pipeline.Money) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= taken
	p.free += taken - spent
	p.spent += spent
}

// settlement is the purse's reservations with what was really spent, spread over them.
func (p *purse) settlement() []pipeline.Reservation {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var settle []pipeline.Reservation
	left := p.spent
	for i, part := range p.open {
		spent := min(left, part.Amount)
		if i == len(p.open)-1 {
			spent = left // a provider may count more tokens than were estimated
		}
		left -= spent
		part.Amount = spent
		settle = append(settle, part)
	}
	return settle
}

// Done settles what the attempt's last stage has reserved.
func (c *Caller) Done(ctx context.Context, a pipeline.Attempt) {
	fence := a.Claim().Fence()
	c.purses.mu.Lock()
	p := c.purses.open[fence]
	delete(c.purses.open, fence)
	c.purses.mu.Unlock()
	if p == nil {
		return
	}
	keep := context.WithoutCancel(ctx)
	settle := p.settlement()
	for n := range storeTries {
		if _, err := c.cfg.Budgets.Settle(keep, p.job, settle...); err == nil || !errors.Is(err, pipeline.ErrBusy) {
			return // what stays open is settled by the reaper, as fully spent
		}
		if c.cfg.Clock.Sleep(keep, backoff(n)) != nil {
			return
		}
	}
}

// noMoney: everybody's while others may give some back, the end of the task's spending otherwise. An attempt that was
// stopped while it waited says so.
func (c *Caller) noMoney(a pipeline.Attempt, answers []pipeline.Answer, open []int, err error) []pipeline.Answer {
	stop := a.Stop()
	if stop == nil && endsSpending(err) {
		stop = err
	}
	if stop != nil {
		for _, i := range open {
			answers[i] = pipeline.Answer{Stop: stop}
		}
		return answers
	}
	return c.all(answers, open, moneyFailure(err), 0)
}

func (t *asking) noMoney(err error) result {
	if endsSpending(err) {
		return stop(err)
	}
	return finished(pipeline.Answer{Failure: moneyFailure(err), Defers: true})
}

// endsSpending says that no money comes back by waiting.
func endsSpending(err error) bool {
	return errors.Is(err, pipeline.ErrCeiling) || errors.Is(err, pipeline.ErrCancelled)
}

func moneyFailure(err error) pipeline.Failure {
	return pipeline.Fail(pipeline.Busy, "no money could be reserved: %v", err)
}
