package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/pipeline"
)

// Keeping is how long what a job leaves is kept. The zero value keeps it for ever.
//
// What lies beside a job's rows is marked with its end when the job ends, and a redrive takes the mark off: nothing of an
// open job ever goes. Replies belong to no one job, so theirs runs from their last use: one that is read with less than
// half of its time left gets all of it again, and half is more than any job has before its deadline
// ([pipeline.Policy.Validate]). DynamoDB deletes late, by days: a reply past its end counts as absent until then.
type Keeping struct {
	For time.Duration
	Now func() pipeline.Instant
}

// end is when what is used now may go, in the seconds of a TTL column.
func (k Keeping) end() int64 { return k.Now().Add(k.For).Time().Unix() }

// over says that a row's end has come.
func (k Keeping) over(row item) bool {
	end := numberIn(row, TTLKey)
	return k.For > 0 && end != 0 && end <= k.Now().Time().Unix()
}

// worn says that less than half of the row's time is left.
func (k Keeping) worn(row item) bool {
	end := numberIn(row, TTLKey)
	return k.For > 0 && end != 0 && end < k.Now().Add(k.For/2).Time().Unix()
}

// free is the condition of a put of a reply: nothing stands there, or what stands is past its end.
func (k Keeping) free() clause {
	if k.For == 0 {
		return absent(PartitionKey)
	}
	return either(absent(PartitionKey), compared(TTLKey, "<=", k.Now().Time().Unix(), false))
}

// refresh gives a reply that is used all of its time again. False: it went meanwhile.
func (s *Store) refresh(ctx context.Context, row item) (bool, error) {
	_, err := s.client.UpdateItem(ctx, update(s.checkpoints, keyIn(row), present(PartitionKey), set(TTLKey, s.keeping.end())))
	if _, is := refused(err); is {
		return false, nil
	}
	return err == nil, explain(ctx, err)
}

// retain marks what an ended job left with its end, once its finalize has left the last of it. What could not be marked
// stays: it costs storage and is never missed.
func (s *Store) retain(ctx context.Context, id pipeline.JobID) {
	if s.keeping.For == 0 {
		return
	}
	ended := func() bool {
		job, err := s.Job(ctx, id)
		return err == nil && job.Status.Ended()
	}
	if ended() && s.mark(ctx, id, s.keeping.end()) == nil && !ended() { // a redrive came before the marks
		_ = s.mark(ctx, id, 0)
	}
}

// retainUnfinalized is retain for a job that was failed without a finalize.
func (s *Store) retainUnfinalized(ctx context.Context, job pipeline.Job) {
	if job.Status.Ended() && job.Result == "" {
		s.retain(ctx, job.ID)
	}
}

// unmark takes the marks off what an ended job left.
func (s *Store) unmark(ctx context.Context, seen pipeline.Job) error {
	if s.keeping.For == 0 || !seen.Status.Ended() {
		return nil
	}
	return s.mark(ctx, seen.ID, 0)
}

// mark sets the end of all items of a job that have none; 0 takes it off those that have one.
func (s *Store) mark(ctx context.Context, job pipeline.JobID, end int64) error {
	for cursor := ""; ; {
		page, next, err := s.under(ctx, s.checkpoints, jobPartition(job), "", cursor, 0)
		if err != nil {
			return err
		}
		var rows []item
		for _, row := range page {
			marked := numberIn(row, TTLKey) != 0
			switch {
			case end != 0 && !marked:
				row[TTLKey] = valueOf(end)
			case end == 0 && marked:
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

// rewrite puts rows of the checkpoints table that are there, as many at once as a batch takes.
func (s *Store) rewrite(ctx context.Context, rows []item) error {
	for len(rows) > 0 {
		n := min(len(rows), pipeline.MaxWrite)
		var writes []types.WriteRequest
		for _, row := range rows[:n] {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: row}})
		}
		err := repeat(ctx, func() (again bool, err error) {
			out, err := s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.checkpoints: writes}})
			if err != nil {
				return false, explain(ctx, err)
			}
			writes = out.UnprocessedItems[s.checkpoints]
			return len(writes) > 0, nil
		})
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
