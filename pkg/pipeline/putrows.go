package pipeline

import (
	"context"
	"fmt"
	"time"
)

const (
	// putRounds bounds how often in a row a batch write may take nothing of what it left out before.
	putRounds = 8
	// putWait is how long the first round waits that follows one which left rows out; it doubles while nothing is taken.
	putWait = 50 * time.Millisecond
)

// rowPutter is the one write of [Tasks] that PutRows makes.
type rowPutter interface {
	PutTasks(ctx context.Context, rows []Task) (unprocessed []Task, err error)
}

// PutRows puts rows that are not there yet, in batches. What a batch leaves out is put again for as long as some of it
// is taken: a store that takes one row at a time is slow, not broken, and whoever came back later would begin with rows
// that are there already. progress is called after every batch that was taken whole; it may be nil.
func PutRows(ctx context.Context, tasks rowPutter, clock Clock, rows []Task, progress func()) error {
	for len(rows) > 0 {
		n := min(len(rows), MaxWrite)
		if err := putBatch(ctx, tasks, clock, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
		if progress != nil {
			progress()
		}
	}
	return nil
}

func putBatch(ctx context.Context, tasks rowPutter, clock Clock, batch []Task) error {
	for idle := 0; ; {
		left, err := tasks.PutTasks(ctx, batch)
		switch {
		case err != nil:
			return fmt.Errorf("put the rows from %s on: %w", batch[0].Ref, err)
		case len(left) == 0:
			return nil
		case len(left) < len(batch):
			idle = 0
		default:
			idle++
		}
		if idle == putRounds {
			return fmt.Errorf("put the rows from %s on: %d were left out %d times: %w", left[0].Ref, len(left), putRounds, ErrBusy)
		}
		batch = left
		if err := clock.Sleep(ctx, putWait<<idle); err != nil {
			return err
		}
	}
}
