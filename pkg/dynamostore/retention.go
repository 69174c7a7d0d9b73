package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/pipeline"
)

// Keeping is how long what a job leaves is kept. The zero value keeps it for ever.
//
// What lies beside a job's rows is marked with its end, For after it, when the reaper finds the job among those that
// ended; a redrive takes the mark off: nothing of an open job ever goes. Replies belong to no one job, so theirs runs
// from their last use: twice For, of which one that is read gets all again once a quarter is over. So the replies of a
// job outlive the rest of it, as long as each is read four times in For while the job is open. DynamoDB deletes late, by
// days: a reply past its end counts as absent until then.
type Keeping struct {
	For time.Duration
	Now func() pipeline.Instant
}

// secondsAt is an instant in the seconds of a TTL column.
func secondsAt(at pipeline.Instant) int64 { return at.Time().Unix() }

// itemEnd is when what a job left may go that is marked now, and replyEnd when a reply that is used now.
func (k Keeping) itemEnd() int64  { return secondsAt(k.Now().Add(k.For)) }
func (k Keeping) replyEnd() int64 { return secondsAt(k.Now().Add(2 * k.For)) }

// over says that a row's end has come.
func (k Keeping) over(row item) bool {
	end := numberIn(row, TTLKey)
	return k.For > 0 && end != 0 && end <= secondsAt(k.Now())
}

// worn says that a quarter of a reply's time is over.
func (k Keeping) worn(row item) bool {
	end := numberIn(row, TTLKey)
	return k.For > 0 && end != 0 && end < secondsAt(k.Now().Add(k.For*3/2))
}

// free is the condition of a put of a reply: nothing stands there, or what stands is past its end.
func (k Keeping) free() clause {
	if k.For == 0 {
		return absent(PartitionKey)
	}
	return either(absent(PartitionKey), compared(TTLKey, "<=", secondsAt(k.Now()), false))
}

// refresh gives a reply that is used all of its time again. False: it went meanwhile.
func (s *Store) refresh(ctx context.Context, row item) (bool, error) {
	_, err := s.client.UpdateItem(ctx, update(s.checkpoints, keyIn(row), present(PartitionKey), set(TTLKey, s.keeping.replyEnd())))
	if _, is := refused(err); is {
		return false, nil
	}
	return err == nil, explain(ctx, err)
}

// endedShard is the partition of the due index with the jobs that ended and whose items have no end yet.
const endedShard = "ended"

// Unmarked is one page of the jobs that had ended by then and whose items have no end yet, first ended first.
func (s *Store) Unmarked(ctx context.Context, ended pipeline.Instant, cursor string) ([]pipeline.Job, string, error) {
	rows, next, err := s.listed(ctx, endedShard, ended, cursor)
	if err != nil {
		return nil, "", named("ended jobs", err)
	}
	jobs, err := jobsOf(rows, func(job pipeline.Job) bool { return job.Status.Ended() })
	return jobs, next, err
}

// Mark gives the items of an ended job their end, and then takes it off the list. A job that was reopened meanwhile
// keeps all of its items.
func (s *Store) Mark(ctx context.Context, job pipeline.Job) error {
	what := "mark what job " + string(job.ID) + " left"
	if s.keeping.For == 0 || !job.Status.Ended() {
		return nil
	}
	if job.Version > pipeline.FormatVersion {
		return named(what, fmt.Errorf("it has format %d: %w; it is left alone, update what runs this", job.Version, pipeline.ErrNewer))
	}
	if err := s.mark(ctx, job.ID, s.keeping.itemEnd()); err != nil {
		return named(what, err)
	}
	_, err := s.client.UpdateItem(ctx, update(s.rows, jobKey(job.ID), sameJob(job), remove(DueShardKey)))
	if _, is := refused(err); !is {
		return named(what, explain(ctx, err))
	}
	stands, err := s.Job(ctx, job.ID)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return nil
	case err != nil:
		return named(what, err)
	case stands.Status.Ended(): // it ended once more, and is still on the list
		return nil
	}
	return s.Unmark(ctx, job.ID)
}

// Unmark takes their end from all items of a job.
func (s *Store) Unmark(ctx context.Context, job pipeline.JobID) error {
	if s.keeping.For == 0 {
		return nil
	}
	return named("keep what job "+string(job)+" left", s.mark(ctx, job, 0))
}

// mark sets the end of all items of a job that have none, or an earlier one; 0 takes it off those that have one.
func (s *Store) mark(ctx context.Context, job pipeline.JobID, end int64) error {
	for cursor := ""; ; {
		page, next, err := s.under(ctx, s.checkpoints, jobPartition(job), "", cursor, 0)
		if err != nil {
			return err
		}
		var rows []item
		for _, row := range page {
			marked := numberIn(row, TTLKey)
			switch {
			case end != 0 && marked < end:
				row[TTLKey] = valueOf(end)
			case end == 0 && marked != 0:
				delete(row, TTLKey)
			default:
				continue
			}
			rows = append(rows, row)
		}
		if err := s.rewrite(ctx, rows); err != nil || next == "" {
			return err
		}
		cursor = next
	}
}

// rewrite puts rows of the checkpoints table that are there.
func (s *Store) rewrite(ctx context.Context, rows []item) error {
	var writes []types.WriteRequest
	for _, row := range rows {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: row}})
	}
	return s.writeBatches(ctx, s.checkpoints, writes)
}

// writeBatches makes writes without conditions, as many at once as a batch takes.
func (s *Store) writeBatches(ctx context.Context, table string, writes []types.WriteRequest) error {
	for batch := range slices.Chunk(writes, pipeline.MaxWrite) {
		err := repeat(ctx, func() (again bool, err error) {
			out, err := s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: batch}})
			if err != nil {
				return false, explain(ctx, err)
			}
			batch = out.UnprocessedItems[table]
			return len(batch) > 0, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
