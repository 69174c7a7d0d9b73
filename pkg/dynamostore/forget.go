package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/pipeline"
)

// ErrOpen says that a job, or a row of its, has not ended: nothing of it may go.
var ErrOpen = errors.New("it has not ended")

// Forget removes an ended job for good. It is cancelled first, so that nobody can redrive it any more; then its items go,
// those replies, its rows, and last its entry in its tenant's list and its own row. Forgetting it again finishes what an
// earlier Forget left.
func (s *Store) Forget(ctx context.Context, job pipeline.Job, replies []pipeline.ReplyKey) error {
	what := "forget job " + string(job.ID)
	stands, err := s.Job(ctx, job.ID)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		stands, stands.Status = job, pipeline.JobCancelled // all but its row may be left
	case err != nil:
		return named(what, err)
	}
	if err := s.forgettable(ctx, stands); err != nil {
		return named(what, err)
	}
	if stands.Status != pipeline.JobCancelled {
		doomed := stands
		doomed.Status = pipeline.JobCancelled
		if stands, err = s.SetJob(ctx, stands, doomed); err != nil {
			return named(what, err)
		}
	}
	var answers []item
	for _, key := range slices.Compact(slices.Sorted(slices.Values(replies))) { // a batch with a key twice is refused
		answers = append(answers, replyRow(key))
	}
	if err := errors.Join(s.remove(ctx, s.checkpoints, answers), s.removeUnder(ctx, s.checkpoints, job.ID), s.removeUnder(ctx, s.rows, job.ID)); err != nil {
		return named(what, err)
	}
	if err := s.remove(ctx, s.rows, []item{keyIn(jobEntry(stands))}); err != nil {
		return named(what, err)
	}
	return named(what, s.removeJob(ctx, stands))
}

// forgettable says that nobody works on the job any more, nor will.
func (s *Store) forgettable(ctx context.Context, job pipeline.Job) error {
	if !job.Status.Ended() {
		return fmt.Errorf("the job is %s: %w", job.Status, ErrOpen)
	}
	rows, err := pipeline.AllTasks(ctx, s, job.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !row.Status.Ended() {
			return fmt.Errorf("%s is %s: %w", row.ID, row.Status, ErrOpen)
		}
	}
	return nil
}

// removeUnder removes what a table has of a job, but the job's own row.
func (s *Store) removeUnder(ctx context.Context, table string, job pipeline.JobID) error {
	for cursor := ""; ; {
		page, next, err := s.under(ctx, table, jobPartition(job), "", cursor, 0)
		if err != nil {
			return err
		}
		var keys []item
		for _, row := range page {
			if table == s.rows && textIn(row, SortKey) == textIn(jobKey(job), SortKey) {
				continue
			}
			keys = append(keys, keyIn(row))
		}
		if err := s.remove(ctx, table, keys); err != nil || next == "" {
			return err
		}
		cursor = next
	}
}

// removeJob removes the job's own row, if it is still as it was seen.
func (s *Store) removeJob(ctx context.Context, job pipeline.Job) error {
	e := newExpression()
	condition := either(absent(PartitionKey), all(sameJob(job)))(e)
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(s.rows), Key: jobKey(job.ID), ConditionExpression: aws.String(condition),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.valuesOrNone(),
	})
	if _, is := refused(err); is {
		return fmt.Errorf("it was changed meanwhile: %w", pipeline.ErrFenced)
	}
	return explain(ctx, err)
}

// remove removes rows, as many at once as a batch takes.
func (s *Store) remove(ctx context.Context, table string, keys []item) error {
	var writes []types.WriteRequest
	for _, key := range keys {
		writes = append(writes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	return s.writeBatches(ctx, table, writes)
}
