package smoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// stack gives a document to the stack's own workers, as any submit does.
func (c *canary) stack(ctx context.Context) error {
	model := c.cfg.Model("", 0).Info()
	job, err := c.submit(ctx, "", model, false)
	if err != nil {
		return err
	}
	began := c.cfg.Clock.Mono()
	foreign, err := c.taken(ctx, job)
	if err != nil {
		return err
	}
	if foreign != "" {
		return c.notTheirs(ctx, job, foreign)
	}
	if job, err = c.ended(ctx, job.ID); err != nil {
		return err
	}
	took := c.cfg.Clock.Mono() - began
	hands, err := c.hands(ctx, job.ID)
	if err != nil {
		return err
	}
	c.tell(hands)
	c.line(Held, "a document was split by the stack's %s, and finalized by %s", c.by(hands, pipeline.TaskSplit), c.by(hands, pipeline.TaskFinalize))
	says, kept, err := c.whole(ctx, job)
	if err != nil {
		return err
	}
	c.holds(kept, "%s, by the stack's %s, in %v", says, c.by(hands, pipeline.TaskWork), rounded(took))
	return nil
}

// taken waits until a chunk was worked on, and says what the stack's workers have if it is not the offline model.
func (c *canary) taken(ctx context.Context, job pipeline.Job) (foreign string, err error) {
	err = c.until(ctx, min(takenWithin, c.cfg.Patience), "a chunk was claimed", func() (bool, error) {
		rows, err := workRows(ctx, c.system, job.ID)
		rejected := slices.IndexFunc(rows, func(row pipeline.Task) bool { return row.Reason.Kind == pipeline.Rejected })
		if rejected >= 0 {
			foreign, _, _ = strings.Cut(rows[rejected].Reason.Cause, ";")
			return true, err
		}
		return slices.ContainsFunc(rows, func(row pipeline.Task) bool { return row.Accepted > 0 || row.Status.Ended() }), err
	})
	if errors.Is(err, errPatience) {
		return "", fmt.Errorf("%w takes from the work queue, or none gets through a stage (%w). Is the work function deployed, and its event source enabled? holdfast why %s --tenant %s", errNobody, err, job.ID, Tenant)
	}
	return foreign, err
}

// notTheirs is what is left of the check where the stack's workers have another model: they claimed the chunks, could
// not work on them, and put them off without using up an attempt.
func (c *canary) notTheirs(ctx context.Context, job pipeline.Job, why string) error {
	c.report.Foreign = why
	if _, err := c.system.Submitter.Cancel(ctx, job.ID, "the stack has no offline model"); err != nil {
		return err
	}
	job, err := c.ended(ctx, job.ID)
	if err != nil {
		return err
	}
	hands, err := c.hands(ctx, job.ID)
	if err != nil {
		return err
	}
	c.tell(hands)
	counted := slices.ContainsFunc(hands, func(h hand) bool { return h.Task.Kind() == pipeline.TaskWork && h.Counted })
	c.holds(!counted && job.Status == pipeline.JobCancelled, "the stack's workers have another model (%s): %s claimed the chunks and put them off, no attempt used up; then job %s was %s",
		why, c.by(hands, pipeline.TaskWork), job.ID, job.Status)
	c.note("no call is made by the stack's workers: what follows is worked on by the canary's own processes")
	return nil
}
