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

// killPace is how long an answer takes, so that a worker can be killed in the middle of its calls: much longer than to
// store one.
const killPace = 800 * time.Millisecond

// flying is how many calls may be in flight when a worker is killed: those that are asked, and as many whose answer came
// and is being stored.
func (o Orders) flying() int { return 2 * o.InFlight }

// killTries is how many jobs the canary makes until it kills a worker in the middle of one: the stack's reaper may ring the
// chunks before the canary's own worker has them, and then the stack's are faster.
const killTries = 3

var errTooLate = errors.New("the worker that was to be killed found nothing more to do")

// victim is a worker process that was killed.
type victim struct {
	orders Orders
	asked  []pipeline.ReplyKey                  // what it had begun to ask
	before map[pipeline.ReplyKey]pipeline.Reply // those of them that were stored
	at     pipeline.Instant
}

// kill kills a worker process in the middle of its calls. The stack's reaper takes its claims, and whoever has the model
// goes on: the stack's workers, while the canary tries something else; or where they have another, the canary's own.
func (c *canary) kill(ctx context.Context) error {
	model := c.cfg.Model("", 0)
	orders := Orders{Own: c.report.Foreign != "", Pace: killPace, InFlight: inFlight}
	if orders.Own {
		model = Own(model)
	}
	var asked []pipeline.ReplyKey
	err := errTooLate
	for n := 0; n < killTries && errors.Is(err, errTooLate); n++ {
		orders.Worker = c.name()
		job, failed := c.submit(ctx, "", model.Info(), true)
		if failed != nil {
			return failed
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
	rows, err := workRows(ctx, c.system, orders.Job)
	if err != nil {
		return err
	}
	held := countRows(rows, func(row pipeline.Task) bool {
		return row.Status == pipeline.TaskClaimed && row.ClaimedBy == orders.Worker
	})
	c.note("SIGKILL to %s, which held %s: it had asked %d calls, and %d answers are stored", orders.Worker, pipeline.CountOf(held, "chunk", "chunks"), len(asked), len(before))
	c.victim = &victim{orders, asked, before, at}
	if orders.Own {
		return c.killed(ctx)
	}
	return nil
}

// killed sees the job of the worker that was killed to its end, and checks what became of it.
func (c *canary) killed(ctx context.Context) error {
	v := c.victim
	if c.victim = nil; v == nil {
		return nil // it could not be killed, or all was checked
	}
	if err := c.takenBack(ctx, v); err != nil {
		return err
	}
	job, err := c.goesOn(ctx, v.orders)
	if err != nil {
		return err
	}
	return c.survived(ctx, job, v)
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
		return len(asked) >= orders.flying()+c.cfg.Definition.Calls()/2, err
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
func (c *canary) takenBack(ctx context.Context, v *victim) error {
	err := c.until(ctx, c.cfg.Patience, "the claims of a dead worker were taken back", func() (bool, error) {
		rows, err := workRows(ctx, c.system, v.orders.Job)
		return countRows(rows, func(row pipeline.Task) bool {
			return row.Status == pipeline.TaskClaimed && row.ClaimedBy == v.orders.Worker
		}) == 0, err
	})
	if err != nil {
		return fmt.Errorf("%w. Nothing sweeps: is the reaper's schedule enabled? By hand: holdfast reap", err)
	}
	hands, err := c.hands(ctx, v.orders.Job)
	if err != nil {
		return err
	}
	last := pipeline.Instant(0)
	for _, h := range hands {
		if h.Worker == v.orders.Worker && h.Failure.Kind == pipeline.Lost {
			last = max(last, h.EndedAt)
		}
	}
	c.holds(last > 0, "the stack's reaper took the dead worker's claims back %v after the kill, each with a record: they last %v", rounded(max(0, last.Sub(v.at))), c.cfg.Policy.ClaimTTL)
	return nil
}

// goesOn sees the job of a dead worker to its end.
func (c *canary) goesOn(ctx context.Context, orders Orders) (pipeline.Job, error) {
	if !orders.Own {
		return c.ended(ctx, orders.Job)
	}
	drain, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	successor := Orders{Job: orders.Job, Worker: c.name(), Own: true, InFlight: inFlight}
	group.Go(func() {
		if err := Work(ctx, drain, c.setup(), c.cfg.Model(successor.Worker, 0), successor); err != nil {
			c.broken("the worker that goes on: %v", err)
		}
	})
	job, err := c.ended(ctx, orders.Job)
	stop()
	group.Wait()
	return job, err
}

// survived checks that nothing was lost with the worker, and nothing asked again but what was in flight.
func (c *canary) survived(ctx context.Context, job pipeline.Job, v *victim) error {
	hands, err := c.hands(ctx, job.ID)
	if err != nil {
		return err
	}
	c.tell(hands)
	says, kept, err := c.whole(ctx, job)
	if err != nil {
		return err
	}
	by := "the stack's " + c.by(hands, pipeline.TaskWork)
	if v.orders.Own {
		by = "a worker of the canary's own"
	}
	c.holds(kept, "nothing was lost: %s, by %s, %v after the kill", says, by, rounded(job.EndedAt.Sub(v.at)))
	type call struct {
		task pipeline.TaskID
		id   string
	}
	stored := map[call]bool{}
	for _, reply := range v.before {
		stored[call{reply.Task, reply.Call}] = true
	}
	again := 0
	for _, h := range hands {
		if h.Worker == v.orders.Worker {
			continue
		}
		for _, try := range h.tries {
			if stored[call{h.Task, try.Call}] {
				again++
			}
		}
	}
	c.holds(again == 0 && len(v.before) > 0, "of %d answers that were stored when it died %d were asked for again", len(v.before), again)
	after, err := pipeline.ReadReplies(ctx, c.cfg.Backend.Store, c.cfg.Backend.Blobs, c.cfg.Clock, v.asked)
	if err != nil {
		return err
	}
	repeated, flying := 0, len(v.asked)-len(v.before)
	for key, reply := range after {
		if _, was := v.before[key]; !was && reply.Worker != v.orders.Worker {
			repeated++
		}
	}
	c.holds(repeated <= flying && flying <= v.orders.flying(), "%d calls were in flight when it died, asked or with an answer that was being stored, of at most %d; %d were asked again", flying, v.orders.flying(), repeated)
	return nil
}

// exited takes the claims of a process of the canary's own back, at once, since its exit was waited for. Nobody is rung.
func exited(ctx context.Context, mute *wiring.System, worker string) error {
	_, err := mute.Reaper.Exited(ctx, worker)
	return err
}
