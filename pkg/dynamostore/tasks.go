package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/pkg/pipeline"
)

// putsAtOnce is how many of a batch's puts are under way together. They are single puts: a batch write takes no
// conditions.
const putsAtOnce = 8

// PutTasks puts each row only if absent. Rows that the store was too busy for are returned.
func (s *Store) PutTasks(ctx context.Context, rows []pipeline.Task) (unprocessed []pipeline.Task, err error) {
	if len(rows) > pipeline.MaxWrite {
		return nil, fmt.Errorf("put %d tasks: a batch has at most %d", len(rows), pipeline.MaxWrite)
	}
	for _, row := range rows {
		if err := taskFits(row); err != nil {
			return rows, err
		}
	}
	errs := make([]error, len(rows))
	seen := map[pipeline.Ref]bool{}
	slots := make(chan struct{}, putsAtOnce)
	var group pipeline.Group
	for i, row := range rows {
		if seen[row.Ref] {
			continue // the first of two wins
		}
		seen[row.Ref] = true
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			_, errs[i] = s.putOnce(ctx, s.rows, taskItem(row))
		})
	}
	group.Wait()
	for i, putErr := range errs {
		switch {
		case putErr == nil:
		case errors.Is(putErr, pipeline.ErrBusy), errors.Is(putErr, pipeline.ErrConflict):
			unprocessed = append(unprocessed, rows[i])
		default:
			unprocessed = append(unprocessed, rows[i])
			err = errors.Join(err, named("put task "+rows[i].Ref.String(), putErr))
		}
	}
	return unprocessed, err
}

// Task reads the row.
func (s *Store) Task(ctx context.Context, ref pipeline.Ref) (pipeline.Task, error) {
	row, err := s.get(ctx, s.rows, taskKey(ref))
	if err == nil && row == nil {
		err = pipeline.ErrNotFound
	}
	if err == nil {
		err = taskOf(row).Newer()
	}
	if err != nil {
		return pipeline.Task{}, named("task "+ref.String(), err)
	}
	return taskOf(row), nil
}

// rowsPerPage keeps a page of rows well under the most that a page may have.
const rowsPerPage = 500

// Tasks is one page of a job's rows in order of their ids.
func (s *Store) Tasks(ctx context.Context, job pipeline.JobID, cursor string) ([]pipeline.Task, string, error) {
	page, next, err := s.under(ctx, s.rows, jobPartition(job), taskPrefix, cursor, rowsPerPage)
	if err != nil {
		return nil, "", named("tasks of job "+string(job), err)
	}
	var rows []pipeline.Task
	for _, row := range page {
		rows = append(rows, taskOf(row))
	}
	return rows, next, nil
}

// under is one page of a partition's rows whose sort key begins with prefix, in order, read consistently. The cursor is
// the rest of the last row's sort key. limit 0 is as many as a page holds.
func (s *Store) under(ctx context.Context, table, partition, prefix, cursor string, limit int32) (page []item, next string, err error) {
	e := newExpression()
	condition := e.name(PartitionKey) + " = " + e.value(partition)
	if prefix != "" {
		condition += " AND begins_with(" + e.name(SortKey) + ", " + e.value(prefix) + ")"
	}
	in := &dynamodb.QueryInput{
		TableName: aws.String(table), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String(condition),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}
	if limit > 0 {
		in.Limit = aws.Int32(limit)
	}
	if cursor != "" {
		in.ExclusiveStartKey = keyOf(partition, prefix+cursor)
	}
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return nil, "", explain(ctx, err)
	}
	if out.LastEvaluatedKey != nil {
		next = strings.TrimPrefix(textIn(out.LastEvaluatedKey, SortKey), prefix)
	}
	return out.Items, next, nil
}

// swap is one compare-and-swap of a task's row. The condition must not hold of a row that is missing. A write that the
// SDK sent again, because its first answer was lost, is recognised by what the row shows: an expiry, a claim id or a
// time that only it sets.
func (s *Store) swap(ctx context.Context, op string, ref pipeline.Ref, condition clause, changes ...change) (pipeline.Task, error) {
	var sent sendings
	out, err := s.client.UpdateItem(ctx, update(s.rows, taskKey(ref), all(condition, known()), changes...), sent.count)
	if old, is := refused(err); is {
		if sent.landed(old, changes) {
			return taskOf(old), nil
		}
		if len(old) == 0 { // no row, or a refusal that does not show it
			if old, err = s.get(ctx, s.rows, taskKey(ref)); err != nil {
				return pipeline.Task{}, named(op+" "+ref.String()+" was refused, and the row could not be read", err)
			}
		}
		return pipeline.Task{}, conditionError(op, ref, old)
	}
	if err != nil {
		return pipeline.Task{}, named(op+" "+ref.String(), explain(ctx, err))
	}
	return taskOf(out.Attributes), nil
}

func conditionError(op string, ref pipeline.Ref, old item) error {
	if len(old) == 0 {
		return &pipeline.ConditionError{Op: op, Ref: ref}
	}
	row := taskOf(old)
	if err := row.Newer(); err != nil {
		return named(op+" "+ref.String(), err)
	}
	return &pipeline.ConditionError{Op: op, Ref: ref, Old: &row}
}
