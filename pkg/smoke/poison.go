package smoke

import (
	"context"
	"fmt"
	"slices"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/triage"
	"holdfast/pkg/view"
)

// poison gives workers of the canary's own a document with a chunk that kills whoever takes it. It is given up with every
// reason, its neighbours are finished, and its dead letter reaches the stack's queue.
func (c *canary) poison(ctx context.Context) error {
	job, err := c.submit(ctx, c.cfg.Poison, Own(c.cfg.Model("", 0)).Info(), true)
	if err != nil {
		return err
	}
	deaths, err := c.feed(ctx, job.ID)
	if err != nil {
		return err
	}
	if job, err = c.ended(ctx, job.ID); err != nil {
		return err
	}
	rows, hands, err := c.outcome(ctx, job.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(rows, func(row pipeline.Task) bool { return row.Status == pipeline.TaskAbandoned })
	done := countRows(rows, func(row pipeline.Task) bool { return row.Status == pipeline.TaskDone })
	c.holds(at >= 0 && done == len(rows)-1 && job.Status == pipeline.JobPartial,
		"%d workers died of it; then it was given up, its %s were finished, and job %s is %s", deaths, pipeline.CountOf(done, "neighbour", "neighbours"), job.ID, job.Status)
	if at < 0 {
		return nil
	}
	row := rows[at]
	attempts := reasons(hands, row.ID)
	c.holds(attempts == c.cfg.Policy.MaxAttempts && deaths == attempts,
		"%s is abandoned after %d attempts of %d, each on record with worker, time and reason: %s", row.ID, attempts, c.cfg.Policy.MaxAttempts, row.Reason)
	if err := c.named(ctx, job, row); err != nil {
		return err
	}
	return c.letter(ctx, job, row, attempts)
}

// feed starts one worker after the other until no chunk is open, and counts those that died.
func (c *canary) feed(ctx context.Context, job pipeline.JobID) (deaths int, err error) {
	most := 2*c.cfg.Policy.MaxAttempts + 2
	for deaths <= most {
		orders := Orders{Job: job, Worker: c.name(), Own: true, InFlight: inFlight}
		p, err := c.cfg.Start(ctx, orders)
		if err != nil {
			return deaths, err
		}
		finished, err := c.attend(ctx, p, job)
		if err != nil || finished {
			return deaths, err
		}
		deaths++
		if err := exited(ctx, c.mute, orders.Worker); err != nil {
			return deaths, fmt.Errorf("take back the claims of %s, which died: %w", orders.Worker, err)
		}
		rows, err := workRows(ctx, c.system, job)
		if err != nil || len(rows) == countRows(rows, func(row pipeline.Task) bool { return row.Status.Ended() }) {
			return deaths, err
		}
	}
	return deaths, fmt.Errorf("it killed %d workers, and is still tried: nothing ends it", deaths)
}

// attend waits until a process has died, or has finished the job.
func (c *canary) attend(ctx context.Context, p Process, job pipeline.JobID) (finished bool, err error) {
	defer func() { _ = p.Kill(); <-p.Exited() }()
	err = c.until(ctx, c.cfg.Patience, "a worker of the canary's own died of a chunk, or finished its job", func() (bool, error) {
		select {
		case <-p.Exited():
			finished = !p.Killed() // by itself: it found nothing more to do
			return true, nil
		default:
		}
		rows, err := workRows(ctx, c.system, job)
		finished = err == nil && len(rows) == countRows(rows, func(row pipeline.Task) bool { return row.Status.Ended() })
		return finished, err
	})
	if err != nil {
		return false, err
	}
	if finished {
		p.Stop()
		<-p.Exited()
	}
	return finished, p.Failed()
}

// reasons counts the attempts of a task that used up one of its own and are fully accounted for.
func reasons(hands []hand, task pipeline.TaskID) int {
	n := 0
	for _, h := range hands {
		if h.Task == task && h.Counted && h.Worker != "" && h.ClaimedAt > 0 && h.EndedAt >= h.ClaimedAt && h.Failure.Kind == pipeline.Lost && h.Failure.Cause != "" {
			n++
		}
	}
	return n
}

// named checks that the result names every cell that is missing, with its reason, and none of another chunk.
func (c *canary) named(ctx context.Context, job pipeline.Job, row pipeline.Task) error {
	result, err := view.Result(ctx, c.system, job)
	if err != nil {
		return err
	}
	want := c.cfg.Definition.CallsAfter(row.Accepted)
	known := 0
	for _, cell := range result.Missing {
		if cell.Chunk == row.ID.Number() && !cell.Failure.None() {
			known++
		}
	}
	c.holds(known == want && len(result.Missing) == want, "the result names its %d cells that are missing, each with the reason; %d of others", known, len(result.Missing)-known)
	return nil
}

// letter checks that the dead letter is in the stack's queue with what there is to know, that a redrive is offered, and
// takes the letter out again.
func (c *canary) letter(ctx context.Context, job pipeline.Job, row pipeline.Task, attempts int) error {
	var letter *triage.Letter
	begin := c.cfg.Clock.Mono()
	find := func() (bool, error) {
		letters, err := c.system.Triage.DeadLetters(ctx)
		at := slices.IndexFunc(letters, func(l triage.Letter) bool { return l.Job == job.ID && l.Task == row.ID })
		if err != nil || at < 0 {
			return false, err
		}
		letter = &letters[at]
		return true, nil
	}
	if err := c.until(ctx, min(takenWithin, c.cfg.Patience), "the dead letter of the chunk was in the work queue's dead-letter queue", find); err != nil {
		return err
	}
	full := 0
	for _, record := range letter.Context {
		if record.Task == row.ID && record.Worker != "" && !record.Failure.None() {
			full++
		}
	}
	c.holds(!letter.Stale && letter.Reason.Kind == row.Reason.Kind && full >= attempts,
		"its dead letter is in the stack's queue, and dead-letters lists it: %s; %d attempts in it, of %d; stale: %v", letter.Meaning, full, attempts, letter.Stale)
	offer, err := c.system.Triage.Preview(ctx, job.ID)
	is := err == nil && slices.ContainsFunc(offer.Tasks, func(t triage.RedrivenTask) bool { return t.Task == row.ID })
	c.holds(is, "a redrive would give it back: %s", offered(offer, err))
	if err := c.unbury(ctx, job.ID); err != nil {
		return err
	}
	c.note("the letter was in the queue for %v: the alarm of dead letters may have heard of it", rounded(c.cfg.Clock.Mono()-begin))
	return nil
}

func offered(r triage.Redriven, err error) string {
	if err != nil {
		return err.Error()
	}
	return pipeline.CountOf(r.Tries, "try more", "tries more")
}
