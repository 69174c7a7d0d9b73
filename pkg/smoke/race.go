package smoke

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

const (
	racers   = 4 // workers that race for the same chunks
	inFlight = 8 // calls at once, of each worker of the canary's own
)

// referee stands before the store of the racers and writes down who won a claim, and who was refused one.
type referee struct {
	mu      sync.Mutex
	wins    map[claimed]int
	refused int
	last    pipeline.Claim // the last one that was won
}

// claimed is one claim: of a row, by its number.
type claimed struct {
	ref        pipeline.Ref
	generation int64
}

// watched is a store whose claims the referee sees.
type watched struct {
	pipeline.Store
	*referee
}

// Claim claims.
func (w watched) Claim(ctx context.Context, write pipeline.ClaimWrite) (pipeline.Task, error) {
	row, err := w.Store.Claim(ctx, write)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch _, refused := pipeline.Old(err); {
	case err == nil:
		w.wins[claimed{row.Ref, row.Generation}]++
		w.last = pipeline.Claim{Task: row}
	case refused:
		w.refused++
	}
	return row, err
}

// race lets several workers, each told of every chunk at the same moment, claim the same rows in the stack's table.
func (c *canary) race(ctx context.Context) error {
	asks := newWitness(Own(c.cfg.Model("", racePace)), c.cfg.Clock)
	job, err := c.submit(ctx, "", asks.Info(), true)
	if err != nil {
		return err
	}
	saw := &referee{wins: map[claimed]int{}}
	drain, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	var heard []pipeline.Queue
	for range racers {
		queue := c.doorbell()
		heard = append(heard, queue)
		seen := *c.cfg.Backend
		seen.Store = watched{seen.Store, saw}
		setup := c.setup()
		setup.Backend = &seen
		worker := setup.newSystem(c.deafTo(queue), asks, Orders{Worker: c.name(), InFlight: inFlight}).Worker()
		group.Go(func() { worker.Run(ctx, drain) })
	}
	all := c.over(c.name(), c.setup().queues(&many{bells{Queue: c.cfg.Backend.Queues.Work}, heard}), nil)
	group.Go(func() {
		if err := lead(drain, all, job.ID); err != nil {
			c.broken("ring the chunks: %v", err)
		}
	})
	job, err = c.ended(ctx, job.ID)
	stop()
	group.Wait()
	if err != nil {
		return err
	}
	return c.raced(ctx, job, saw, asks)
}

// racePace is how long an answer takes, so that a claim is held while the others ask for it.
const racePace = 100 * time.Millisecond

func (c *canary) raced(ctx context.Context, job pipeline.Job, saw *referee, asks *witness) error {
	rows, hands, err := c.outcome(ctx, job.ID)
	if err != nil {
		return err
	}
	won, twice := 0, 0
	for _, n := range saw.wins {
		won++
		if n > 1 {
			twice++
		}
	}
	elsewhere, claims := 0, int64(0) // a worker of the stack may have been rung too
	for _, h := range hands {
		if h.Task.Kind() == pipeline.TaskWork && !c.mine(h.Worker) {
			elsewhere++
		}
	}
	for _, row := range rows {
		claims += row.Generation
	}
	c.holds(twice == 0 && won > 0 && int64(won+elsewhere) == claims,
		"%d workers raced for %s: %d claims, each won once (%d won twice, %d by the stack's), %d refused; the rows count %d",
		racers, pipeline.CountOf(len(rows), "chunk", "chunks"), won, twice, elsewhere, saw.refused, claims)
	c.holds(saw.refused > 0, "they did race: %d claims were refused to who came second", saw.refused)
	asked, again, _ := asks.count()
	c.holds(again == 0 && asked > 0, "%d calls were asked once each, %d again", asked, again)
	says, kept, err := c.whole(ctx, job)
	if err != nil {
		return err
	}
	c.holds(kept, "%s", says)
	return c.late(ctx, saw.last)
}

// late is a worker that comes back when its task has long ended: its claim is over, and its writes are refused.
func (c *canary) late(ctx context.Context, claim pipeline.Claim) error {
	now := c.cfg.Clock.Now()
	_, renewed := c.cfg.Backend.Store.Renew(ctx, pipeline.RenewWrite{
		Fence: claim.Fence(), Expires: now.Add(c.cfg.Policy.ClaimTTL), Stage: 1, StageAt: now, Allowed: claim.Allowed,
	})
	_, ended := c.cfg.Backend.Store.End(ctx, pipeline.EndWrite{
		Fence: claim.Fence(), Verdict: pipeline.Verdict{Status: pipeline.TaskAbandoned}, Accepted: claim.Accepted, EndedBy: "late",
	})
	for _, err := range []error{renewed, ended} {
		if err != nil && !errors.Is(err, pipeline.ErrFenced) {
			return err
		}
	}
	row, err := c.cfg.Backend.Store.Task(ctx, claim.Ref)
	if err != nil {
		return err
	}
	c.holds(renewed != nil && ended != nil && row.Status == pipeline.TaskDone, "a late worker's renewal and end of %s are refused, and it stays done: it is %s", claim.ID, row.Status)
	return nil
}
