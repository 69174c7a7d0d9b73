package pipeline

import (
	"context"
	"errors"
	"fmt"
)

// Choosy is a queue that can leave the messages of some jobs to others. One that cannot delivers them, and they are
// deferred.
type Choosy interface {
	Queue
	// For is the queue as it is for somebody who works for some jobs only: Receive leaves the messages of the others as
	// they are, for others, and counts no receive of them. What names no job is everybody's.
	For(mine func(ctx context.Context, job JobID) bool) Queue
}

// Queues are the two queues of a deployment: splits and finalizes on one, chunks on the other, so that a long
// document in front never keeps a short one from starting.
type Queues struct {
	Control Queue
	Work    Queue
}

// Names of the two, wherever they are shown or stored.
const (
	ControlQueue = "control"
	WorkQueue    = "work"
)

// Of is the queue of a kind of task.
func (q Queues) Of(kind TaskKind) Queue {
	if kind == TaskWork {
		return q.Work
	}
	return q.Control
}

// sendRounds bounds how often what a batch send did not take is sent again before the reaper is left to ring.
const sendRounds = 3

// Ring sends the bell of each row. Its error says which were not sent: they are due, so the reaper rings them.
func (q Queues) Ring(ctx context.Context, rows ...Task) error {
	byQueue := map[Queue][]Message{}
	for _, row := range rows {
		queue := q.Of(row.ID.Kind())
		byQueue[queue] = append(byQueue[queue], row.Message())
	}
	var errs []error
	for _, queue := range []Queue{q.Control, q.Work} {
		messages := byQueue[queue]
		delete(byQueue, queue)
		for len(messages) > 0 {
			n := min(len(messages), MaxBatch)
			if err := sendBatch(ctx, queue, messages[:n]); err != nil {
				errs = append(errs, err)
			}
			messages = messages[n:]
		}
	}
	return errors.Join(errs...)
}

func sendBatch(ctx context.Context, queue Queue, batch []Message) error {
	for range sendRounds {
		failed, err := queue.Send(ctx, batch)
		if err != nil {
			return fmt.Errorf("ring %d rows, %s first: %w", len(batch), batch[0].Ref(), err)
		}
		if len(failed) == 0 {
			return nil
		}
		batch = failed
	}
	return fmt.Errorf("ring %s: the queue did not take %d messages", batch[0].Ref(), len(batch))
}
