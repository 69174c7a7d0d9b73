package call

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// beginning is one beginning of a job: a redrive is another.
type beginning struct {
	job   pipeline.JobID
	epoch int64
}

// overspending is a job of which a try cost more than its definition says a try may cost: what was shown before the run
// does not bound it any more.
type overspending struct {
	why  error
	told bool // the job was ended for everybody
}

// overspent ends the spending of a job whose try cost more than most: of this process at once, of every other as soon as
// it reads the job. What the try brought is paid for and stays.
func (t *asking) overspent(most, cost pipeline.Money) {
	key := t.beginning()
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.overspent[key] == nil {
		t.c.overspent[key] = &overspending{why: fmt.Errorf("%w: %s said at most %s for a try, and one cost %s", pipeline.ErrOverspent, t.c.info.ID(), most, cost)}
	}
}

// mayCost is why nothing more may be spent on the job; nil if it may. It ends the job for everybody where that is not
// done yet.
func (t *asking) mayCost(ctx context.Context) error {
	t.c.mu.Lock()
	over := t.c.overspent[t.beginning()]
	t.c.mu.Unlock()
	if over == nil {
		return nil
	}
	if err := t.endJob(ctx, over); err != nil {
		return fmt.Errorf("%w; the job is to be ended by another: %w", over.why, err)
	}
	return over.why
}

// endJob tells everybody. Where that does not work now, the next who asks does it.
func (t *asking) endJob(ctx context.Context, over *overspending) error {
	t.c.mu.Lock()
	told := over.told
	over.told = true
	t.c.mu.Unlock()
	if told || t.c.cfg.EndJob == nil {
		return nil
	}
	err := t.c.cfg.EndJob(context.WithoutCancel(ctx), t.a.Claim().Job, over.why.Error())
	if err != nil {
		t.c.mu.Lock()
		over.told = false
		t.c.mu.Unlock()
	}
	return err
}

func (t *asking) beginning() beginning {
	return beginning{t.a.Claim().Job, t.a.Job().Epoch}
}

// dropped is the end of a handler's try whose context was over, and what the handler said that it cost.
type dropped struct {
	error
	cost pipeline.Money
}

func (d *dropped) Unwrap() error { return d.error }

// toldCost is what a handler said that a dropped try cost.
func toldCost(err error) pipeline.Money {
	var d *dropped
	if errors.As(err, &d) {
		return d.cost
	}
	return 0
}
