package triage

import (
	"context"
	"errors"
	"fmt"
	"math"

	"holdfast/pkg/pipeline"
)

// unbounded is no ceiling of a person's: each task gets what it may need at most.
const unbounded = pipeline.Money(math.MaxInt64)

// RedriveWithin is Redrive that raises the job's ceiling to no more than most: what that does not cover is not asked,
// and is missing again.
func (t *Triage) RedriveWithin(ctx context.Context, id pipeline.JobID, most pipeline.Money, tasks ...pipeline.TaskID) (Redriven, error) {
	room := unbounded
	if most != unbounded {
		budget, err := t.cfg.Store.Budget(ctx, id)
		if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
			return Redriven{}, fmt.Errorf("redrive job %s: read its budget: %w", id, err)
		}
		if most <= budget.Spent {
			return Redriven{}, fmt.Errorf("redrive job %s: %w: a ceiling of %s leaves nothing: %s are spent already", id, ErrRefused, most, budget.Spent)
		}
		room = max(0, most-budget.Ceiling)
	}
	return t.each(ctx, id, tasks, func(ctx context.Context, ref pipeline.Ref) (RedrivenTask, pipeline.Job, error) {
		part, job, err := t.redrive(ctx, ref, room)
		if err == nil && room != unbounded {
			room -= part.Cost
		}
		return part, job, err
	})
}
