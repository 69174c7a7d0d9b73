package pipeline

import (
	"context"
	"fmt"
)

// CancelRow closes a row that nobody holds as cancelled, first recording at which stage it stopped. The record is put
// only once: a worker that was there knows better. Finished work is done, whatever came after.
func CancelRow(ctx context.Context, store interface {
	PutItemOnce(ctx context.Context, job JobID, key string, body []byte) (stands []byte, err error)
	Close(ctx context.Context, w CloseWrite) (Task, error)
}, row Task, reason Failure, now Instant,
) (Task, error) {
	if row.Accepted >= row.Stages {
		return store.Close(ctx, CloseWrite{Seen: row, Status: TaskDone})
	}
	body := Encode(NewCancellation(row, "", reason, now))
	if _, err := store.PutItemOnce(ctx, row.Job, CancellationKey(row.ID), body); err != nil {
		return row, fmt.Errorf("record at which stage %s stopped: %w", row.Ref, err)
	}
	return store.Close(ctx, CloseWrite{Seen: row, Status: TaskCancelled, Reason: reason})
}
