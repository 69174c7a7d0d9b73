package telemetry

import (
	"context"

	"holdfast/pkg/pipeline"
)

// counted is a store whose writes that gave a task up are counted: whoever made them, each once.
type counted struct {
	pipeline.Store
	meter *Meter
}

// Store is the store with its endings counted.
func Store(store pipeline.Store, meter *Meter) pipeline.Store { return counted{store, meter} }

func (c counted) abandoned(row pipeline.Task, err error) (pipeline.Task, error) {
	if err == nil && row.Status == pipeline.TaskAbandoned {
		c.meter.Add(TasksAbandoned, 1)
	}
	return row, err
}

// End ends a claim.
func (c counted) End(ctx context.Context, w pipeline.EndWrite) (pipeline.Task, error) {
	return c.abandoned(c.Store.End(ctx, w))
}

// Expire ends a claim that lapsed.
func (c counted) Expire(ctx context.Context, w pipeline.ExpireWrite) (pipeline.Task, error) {
	return c.abandoned(c.Store.Expire(ctx, w))
}

// Close ends a row that nobody holds.
func (c counted) Close(ctx context.Context, w pipeline.CloseWrite) (pipeline.Task, error) {
	return c.abandoned(c.Store.Close(ctx, w))
}
