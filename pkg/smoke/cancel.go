package smoke

import (
	"context"
	"errors"
	"time"

	"holdfast/pkg/pipeline"
)

const (
	// cancelPace is how long an answer takes, so that calls are in flight when the job is cancelled.
	cancelPace = time.Second
	// spendsFor is how long after a cancel was accepted a call may still begin.
	spendsFor = 2 * time.Second
)

// cancel cancels a job in the middle of its calls.
func (c *canary) cancel(ctx context.Context) error {
	asks := newWitness(c.cfg.Model("", cancelPace), c.cfg.Clock)
	job, err := c.submit(ctx, "", Own(asks).Info(), true)
	if err != nil {
		return err
	}
	drain, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	orders := Orders{Job: job.ID, Worker: c.name(), Own: true, InFlight: inFlight, Claims: 1} // the others wait, and must never be claimed
	group.Go(func() {
		if err := Work(ctx, drain, c.setup(), asks, orders); err != nil {
			c.broken("the worker whose job is cancelled: %v", err)
		}
	})
	defer func() { stop(); group.Wait() }()
	err = c.until(ctx, c.cfg.Patience, "calls were in flight", func() (bool, error) {
		asked, _, _ := asks.count()
		return asked > 0, nil
	})
	if err != nil {
		return err
	}
	if _, err := c.system.Submitter.Cancel(ctx, job.ID, "the canary cancels"); err != nil {
		return err
	}
	accepted := c.cfg.Clock.Mono()
	then, err := workRows(ctx, c.system, job.ID)
	if err != nil {
		return err
	}
	if job, err = c.ended(ctx, job.ID); err != nil {
		return err
	}
	// The time in which a call might still begin is over before that is judged.
	if err := c.cfg.Clock.Sleep(ctx, spendsFor-(c.cfg.Clock.Mono()-accepted)); err != nil {
		return err
	}
	stop()
	group.Wait()
	return c.cancelled(ctx, job, then, asks, accepted)
}

// cancelled checks what a cancel left; then is how the rows were when it had been accepted.
func (c *canary) cancelled(ctx context.Context, job pipeline.Job, then []pipeline.Task, asks *witness, accepted time.Duration) error {
	rows, hands, err := c.outcome(ctx, job.ID)
	if err != nil {
		return err
	}
	ended := countRows(rows, func(row pipeline.Task) bool { return row.Status == pipeline.TaskCancelled })
	done := countRows(rows, func(row pipeline.Task) bool { return row.Status == pipeline.TaskDone })
	c.holds(job.Status == pipeline.JobCancelled && ended > 0 && ended+done == len(rows),
		"job %s is %s %v after it was cancelled: %d of %s cancelled, %d done before; finalized by the stack's %s", job.ID, job.Status,
		rounded(job.EndedAt.Sub(job.CancelledAt)), ended, pipeline.CountOf(len(rows), "chunk", "chunks"), done, c.by(hands, pipeline.TaskFinalize))
	asked, _, last := asks.count()
	late := last - accepted
	c.holds(late <= spendsFor, "the last of %d calls began %s", asked, when(late))
	claimedSince := 0
	for i, row := range rows {
		if i >= len(then) || row.Ref != then[i].Ref || row.Generation != then[i].Generation {
			claimedSince++
		}
	}
	c.holds(claimedSince == 0, "%d claims since", claimedSince)
	stages := 0
	for _, row := range rows {
		if row.Status != pipeline.TaskCancelled {
			continue
		}
		body, err := c.cfg.Backend.Store.Item(ctx, row.Job, pipeline.CancellationKey(row.ID))
		if errors.Is(err, pipeline.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if cancellation, err := pipeline.Decode[pipeline.Cancellation](body, "cancellation"); err == nil && cancellation.Stage > 0 {
			stages++
		}
	}
	c.holds(stages == ended, "%d of %d cancelled chunks say at which stage they were", stages, ended)
	return nil
}

// when is a time around the cancel, for a person.
func when(after time.Duration) string {
	if after <= 0 {
		return rounded(-after).String() + " before the cancel was accepted"
	}
	return rounded(after).String() + " after the cancel was accepted"
}
