package smoke

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// unburier is a queue whose dead letters of one job can be removed.
type unburier interface {
	Unbury(ctx context.Context, job pipeline.JobID) (removed int, err error)
}

var errNoUnbury = errors.New("this backend's dead letters cannot be removed")

// unbury removes the dead letters of a job from the stack's work queue, until a look finds none.
func (c *canary) unbury(ctx context.Context, job pipeline.JobID) error {
	queue, can := c.cfg.Backend.Queues.Work.(unburier)
	if !can {
		return errNoUnbury
	}
	sum := 0
	err := c.until(ctx, c.cfg.Patience, "the canary's dead letters were removed", func() (bool, error) {
		removed, err := queue.Unbury(ctx, job)
		sum += removed
		return sum > 0 && removed == 0, err
	})
	if err != nil {
		return err
	}
	c.line(Held, "%s of job %s taken out of the queue again", pipeline.CountOf(sum, "dead letter was", "dead letters were"), job)
	return nil
}

// clean ends what is still open, and removes every job that the canary made.
func (c *canary) clean(ctx context.Context) {
	gone := 0
	for _, job := range c.jobs {
		if err := c.remove(ctx, job.ID); err != nil {
			c.report.Left++
			c.broken("job %s stays (%v). What is open ends by itself by %s; then the next canary removes it", job.ID, err, job.Deadline)
			continue
		}
		gone++
	}
	c.holds(c.report.Left == 0, "%s of the canary's removed with all rows, items, answers and blobs; %d stay", pipeline.CountOf(gone, "job", "jobs"), c.report.Left)
}

// remove ends a job if it is open, and removes it.
func (c *canary) remove(ctx context.Context, id pipeline.JobID) error {
	job, err := c.cfg.Backend.Store.Job(ctx, id)
	if err != nil {
		return err
	}
	if !job.Status.Ended() {
		if _, err := c.system.Submitter.Cancel(ctx, id, "the canary is over"); err != nil {
			return err
		}
	}
	if err := c.release(ctx, id); err != nil {
		return err
	}
	if job, err = c.endedOrFinished(ctx, id); err != nil {
		return err
	}
	if err := c.noLetters(ctx, id); err != nil {
		return err
	}
	return c.forget(ctx, job)
}

// endedOrFinished waits for a job's end; where the stack has nobody who finalizes it, the canary does.
func (c *canary) endedOrFinished(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	if !c.nobody {
		job, err := c.ended(ctx, id)
		if err == nil || !errors.Is(err, errPatience) {
			return job, err
		}
	}
	doorbell := c.doorbell()
	queues := pipeline.Queues{Control: bells{c.cfg.Backend.Queues.Control, doorbell}, Work: bells{c.cfg.Backend.Queues.Work, c.doorbell()}}
	system := c.setup().newSystem(queues, nil, Orders{Worker: c.name(), InFlight: inFlight})
	drain, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	group.Go(func() { system.Worker().Run(ctx, drain) })
	defer func() { stop(); group.Wait() }()
	if err := system.Opener.MaybeFinalize(ctx, id); err != nil {
		return pipeline.Job{}, err
	}
	rows, err := pipeline.AllTasks(ctx, c.cfg.Backend.Store, id)
	if err != nil {
		return pipeline.Job{}, err
	}
	for _, row := range rows {
		if row.ID.Kind() != pipeline.TaskFinalize || row.Status.Ended() {
			continue
		}
		if err := queues.Ring(ctx, row); err != nil {
			return pipeline.Job{}, err
		}
	}
	c.note("nobody of the stack finalizes job %s: the canary does, to remove it", id)
	return c.ended(ctx, id)
}

// noLetters removes what dead letters a job still has: a check may have stopped before it did.
func (c *canary) noLetters(ctx context.Context, id pipeline.JobID) error {
	rows, err := pipeline.AllTasks(ctx, c.cfg.Backend.Store, id)
	if err != nil || countRows(rows, func(row pipeline.Task) bool { return row.Status == pipeline.TaskAbandoned }) == 0 {
		return err
	}
	for _, queue := range []pipeline.Queue{c.cfg.Backend.Queues.Control, c.cfg.Backend.Queues.Work} {
		its, can := queue.(unburier)
		if !can {
			return errNoUnbury
		}
		for removed := 1; removed > 0; {
			if removed, err = its.Unbury(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// release takes back the claims that workers of the canary's own died with: all of them have exited.
func (c *canary) release(ctx context.Context, id pipeline.JobID) error {
	rows, err := workRows(ctx, c.system, id)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Status == pipeline.TaskClaimed && c.mine(row.ClaimedBy) {
			if err := exited(ctx, c.mute, row.ClaimedBy); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes an ended job and sees that it is gone.
func (c *canary) forget(ctx context.Context, job pipeline.Job) error {
	b := c.cfg.Backend
	if b.Forget == nil {
		return errors.New("nothing can be removed from this backend")
	}
	rows, err := pipeline.AllTasks(ctx, b.Store, job.ID)
	if err != nil {
		return err
	}
	items, err := pipeline.AllItems(ctx, b.Store, job.ID, "")
	if err != nil {
		return err
	}
	replies, err := c.system.ReplyKeys(ctx, job, rows, items)
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) { // without its definition nobody knows them, and they end by themselves
		return fmt.Errorf("find its answers: %w", err)
	}
	blobs := []string{job.Fingerprint, pipeline.SourceKey(job.Source), pipeline.OriginKey(job.Source)}
	if m, err := pipeline.ReadManifest(ctx, b.Store, job.ID); err == nil && m.Document != "" {
		blobs = append(blobs, pipeline.DocumentKey(m.Document))
	}
	for _, row := range rows {
		if row.ID.Kind() == pipeline.TaskFinalize {
			for generation := int64(1); generation <= row.Generation; generation++ { // a finalize that died may have left one
				blobs = append(blobs, pipeline.ResultKey(job.ID, int64(row.ID.Number()), generation))
			}
		}
	}
	if err := b.Forget(ctx, job, replies, blobs); err != nil {
		return err
	}
	return c.gone(ctx, job, replies, blobs)
}

// gone checks that nothing of a job is left.
func (c *canary) gone(ctx context.Context, job pipeline.Job, replies []pipeline.ReplyKey, blobs []string) error {
	b := c.cfg.Backend
	if _, err := b.Store.Job(ctx, job.ID); !errors.Is(err, pipeline.ErrNotFound) {
		return fmt.Errorf("its row is still there: %v", err)
	}
	rows, err := pipeline.AllTasks(ctx, b.Store, job.ID)
	if err != nil || len(rows) > 0 {
		return fmt.Errorf("%d rows are still there: %v", len(rows), err)
	}
	items, err := pipeline.AllItems(ctx, b.Store, job.ID, "")
	if err != nil || len(items) > 0 {
		return fmt.Errorf("%d items are still there: %v", len(items), err)
	}
	found, err := pipeline.ReadReplies(ctx, b.Store, b.Blobs, c.cfg.Clock, replies)
	if err != nil || len(found) > 0 {
		return fmt.Errorf("%d answers are still there: %v", len(found), err)
	}
	for _, key := range blobs {
		if _, err := b.Blobs.Blob(ctx, key); !errors.Is(err, pipeline.ErrNotFound) {
			return fmt.Errorf("blob %s is still there: %v", key, err)
		}
	}
	return nil
}

// forgetEarlier removes the jobs that a canary left that was killed: by now they have ended. Those of the last hour stay:
// between two checks a canary that is at work has ended jobs alone, and has yet to look at them.
func (c *canary) forgetEarlier(ctx context.Context) error {
	for cursor := ""; ; {
		jobs, next, err := c.cfg.Backend.Store.Jobs(ctx, Tenant, cursor, pipeline.MaxRead)
		if err != nil {
			return fmt.Errorf("look for what an earlier canary left: %w", err)
		}
		for _, job := range jobs {
			if c.cfg.Clock.Now() < job.CreatedAt.Add(deadline) {
				continue
			}
			if err := c.forget(ctx, job); err != nil {
				return fmt.Errorf("remove job %s, which an earlier canary left: %w", job.ID, err)
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
