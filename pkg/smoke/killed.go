package smoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// killPace is how long an answer takes, so that a worker can be killed in the middle of its calls.
const killPace = 300 * time.Millisecond

// killTries is how many jobs the canary makes until it kills a worker in the middle of one: the stack's reaper may ring the
// chunks before the canary's own worker has them, and then the stack's are faster.
const killTries = 3

var errTooLate = errors.New("the worker that was to be killed found nothing more to do")

// killed kills a worker process in the middle of its calls. The stack's reaper takes its claims, and whoever has the
// model goes on: the stack's workers, or where they have another the canary's own.
func (c *canary) killed(ctx context.Context) error {
	model := c.cfg.Model("", 0)
	orders := Orders{Own: c.report.Foreign != "", Pace: killPace, InFlight: inFlight}
	if orders.Own {
		model = Own(model)
	}
	var job pipeline.Job
	var asked []pipeline.ReplyKey
	err := errTooLate
	for n := 0; n < killTries && errors.Is(err, errTooLate); n++ {
		orders.Worker = c.name()
		if job, err = c.submit(ctx, "", model.Info(), true); err != nil {
			return err
		}
		orders.Job = job.ID
		asked, err = c.killHalfway(ctx, orders)
	}
	if err != nil {
		return err
	}
	at := c.cfg.Clock.Now()
	before, err := pipeline.ReadReplies(ctx, c.cfg.Backend.Store, c.cfg.Backend.Blobs, c.cfg.Clock, asked)
	if err != nil {
		return err
	}
	rows, err := workRows(ctx, c.system, job.ID)
	if err != nil {
		return err
	}
	held := countRows(rows, func(row pipeline.Task) bool {
		return row.Status == pipeline.TaskClaimed && row.ClaimedBy == orders.Worker
	})
	c.note("SIGKILL to %s, which held %s: it had asked %d calls, and %d answers are stored", orders.Worker, pipeline.CountOf(held, "chunk", "chunks"), len(asked), len(before))
	if err := c.takenBack(ctx, job.ID, orders.Worker); err != nil {
		return err
	}
	if job, err = c.goesOn(ctx, job, orders); err != nil {
		return err
	}
	return c.survived(ctx, job, orders, asked, before, at)
}

// killHalfway starts a worker and kills it when some answers are stored and others in flight. It returns what it had asked.
func (c *canary) killHalfway(ctx context.Context, orders Orders) ([]pipeline.ReplyKey, error) {
	p, err := c.cfg.Start(ctx, orders)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Kill(); <-p.Exited() }()
	err = c.until(ctx, c.cfg.Patience, "a worker of the canary's own was in the middle of its calls", func() (bool, error) {
		select {
		case <-p.Exited():
			return false, cmp.Or(p.Failed(), errTooLate)
		default:
		}
		asked, err := p.Asked()
		return len(asked) >= orders.InFlight+c.cfg.Definition.Calls()/2, err
	})
	if err != nil {
		return nil, err
	}
	if err := p.Kill(); err != nil {
		return nil, fmt.Errorf("kill %s: %w", orders.Worker, err)
	}
	<-p.Exited()
	asked, err := p.Asked()
	slices.Sort(asked)
	return slices.Compact(asked), err
}

func countRows(rows []pipeline.Task, is func(pipeline.Task) bool) int {
	n := 0
	for _, row := range rows {
		if is(row) {
			n++
		}
	}
	return n
}

// takenBack waits until the stack has taken the claims of a worker that died.
func (c *canary) takenBack(ctx context.Context, job pipeline.JobID, worker string) error {
	begin := c.cfg.Clock.Mono()
	err := c.until(ctx, c.cfg.Patience, "the claims of a dead worker were taken back", func() (bool, error) {
		rows, err := workRows(ctx, c.system, job)
		return countRows(rows, func(row pipeline.Task) bool { return row.Status == pipeline.TaskClaimed && row.ClaimedBy == worker }) == 0, err
	})
	if err != nil {
		return fmt.Errorf("%w. Nothing sweeps: is the reaper's schedule enabled? By hand: holdfast reap", err)
	}
	c.line(Held, "the stack's reaper took the dead worker's claims back after %v: they last %v", rounded(c.cfg.Clock.Mono()-begin), c.cfg.Policy.ClaimTTL)
	return nil
}

// goesOn sees the job of a dead worker to its end.
func (c *canary) goesOn(ctx context.Context, job pipeline.Job, orders Orders) (pipeline.Job, error) {
	if !orders.Own {
		return c.ended(ctx, job.ID)
	}
	drain, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	successor := Orders{Job: job.ID, Worker: c.name(), Own: true, InFlight: inFlight}
	group.Go(func() {
		if err := Work(ctx, drain, c.setup(), c.cfg.Model(successor.Worker, 0), successor); err != nil {
			c.broken("the worker that goes on: %v", err)
		}
	})
	job, err := c.ended(ctx, job.ID)
	stop()
	group.Wait()
	return job, err
}

// survived checks that nothing was lost with the worker, and nothing asked again but what was in flight.
func (c *canary) survived(ctx context.Context, job pipeline.Job, orders Orders, asked []pipeline.ReplyKey, before map[pipeline.ReplyKey]pipeline.Reply, at pipeline.Instant) error {
	hands, err := c.hands(ctx, job.ID)
	if err != nil {
		return err
	}
	c.tell(hands)
	lost := slices.ContainsFunc(hands, func(h hand) bool { return h.Worker == orders.Worker && h.Failure.Kind == pipeline.Lost })
	c.holds(lost, "its lost attempts are on record, each with worker, time and reason")
	says, kept, err := c.whole(ctx, job)
	if err != nil {
		return err
	}
	by := "the stack's " + c.by(hands, pipeline.TaskWork)
	if orders.Own {
		by = "a worker of the canary's own"
	}
	c.holds(kept, "nothing was lost: %s, by %s, %v after the kill", says, by, rounded(job.EndedAt.Sub(at)))
	type call struct {
		task pipeline.TaskID
		id   string
	}
	stored := map[call]bool{}
	for _, reply := range before {
		stored[call{reply.Task, reply.Call}] = true
	}
	again := 0
	for _, h := range hands {
		if h.Worker == orders.Worker {
			continue
		}
		for _, try := range h.tries {
			if stored[call{h.Task, try.Call}] {
				again++
			}
		}
	}
	c.holds(again == 0 && len(before) > 0, "of %d answers that were stored when it died %d were asked for again", len(before), again)
	after, err := pipeline.ReadReplies(ctx, c.cfg.Backend.Store, c.cfg.Backend.Blobs, c.cfg.Clock, asked)
	if err != nil {
		return err
	}
	flying := 0
	for key, reply := range after {
		if _, was := before[key]; !was && reply.Worker != orders.Worker {
			flying++
		}
	}
	c.holds(flying <= orders.InFlight && len(asked)-len(before) <= orders.InFlight, "%d calls in flight were asked again, of at most %d", flying, orders.InFlight)
	return nil
}

// exited takes the claims of a process of the canary's own back, at once, since its exit was waited for. Nobody is rung.
func exited(ctx context.Context, mute *wiring.System, worker string) error {
	_, err := mute.Reaper.Exited(ctx, worker)
	return err
}
