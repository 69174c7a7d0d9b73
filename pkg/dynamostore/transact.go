package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/pipeline"
)

// putIn is a put as part of a transaction.
func putIn(in *dynamodb.PutItemInput) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}
}

// updateIn is an update as part of a transaction.
func updateIn(in *dynamodb.UpdateItemInput) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression, UpdateExpression: in.UpdateExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}
}

// transact makes all of the writes or none. The SDK gives the request a token, so its own repeats land once.
func (s *Store) transact(ctx context.Context, writes ...types.TransactWriteItem) error {
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	return err
}

// Submit puts job, split and the entry in the tenant's list together, each only if absent.
func (s *Store) Submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (stands pipeline.Job, created bool, err error) {
	if err := jobFits(job); err != nil {
		return pipeline.Job{}, false, err
	}
	if err := taskFits(split); err != nil {
		return pipeline.Job{}, false, err
	}
	err = repeat(ctx, func() (again bool, err error) {
		stands, created, again, err = s.submit(ctx, job, split)
		return again, err
	})
	return stands, created, named("submit job "+string(job.ID), err)
}

func (s *Store) submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (stands pipeline.Job, created, again bool, err error) {
	err = s.transact(ctx,
		putIn(put(s.rows, s.jobItem(job), absent(PartitionKey))),
		putIn(put(s.rows, taskItem(split), absent(PartitionKey))),
		putIn(put(s.rows, jobEntry(job), nil)),
	)
	if err == nil {
		return job, true, false, nil
	}
	reasons, _ := cancelled(err)
	switch {
	case reasonAt(reasons, 0) == reasonRefused:
		stands, err := s.heal(ctx, job.ID, split)
		return stands, false, false, err
	case reasonAt(reasons, 1) == reasonRefused: // a split without its job
		created, err := s.putJob(ctx, job)
		return job, created, err == nil && !created, err
	case reasonAt(reasons, 0) == reasonConflict, reasonAt(reasons, 1) == reasonConflict, reasonAt(reasons, 2) == reasonConflict:
		return pipeline.Job{}, false, true, nil
	}
	return pipeline.Job{}, false, false, explainCancelled(ctx, err)
}

// heal puts what the job that stands may lack.
func (s *Store) heal(ctx context.Context, id pipeline.JobID, split pipeline.Task) (pipeline.Job, error) {
	stands, err := s.Job(ctx, id)
	if err != nil {
		return pipeline.Job{}, err
	}
	if _, err := s.putOnce(ctx, s.rows, taskItem(split)); err != nil {
		return pipeline.Job{}, err
	}
	_, err = s.putOnce(ctx, s.rows, jobEntry(stands))
	return stands, err
}

func (s *Store) putJob(ctx context.Context, job pipeline.Job) (created bool, err error) {
	if _, err := s.putOnce(ctx, s.rows, jobEntry(job)); err != nil {
		return false, err
	}
	stands, err := s.putOnce(ctx, s.rows, s.jobItem(job))
	return err == nil && stands == nil, err
}

// redrivable is what must still hold of a task that is redriven: it has ended, and is as it was seen.
func redrivable(seen pipeline.Task) clause {
	return all(
		reads("status", seen.Status),
		equals("generation", seen.Generation),
		either(
			reads("status", pipeline.TaskDone),
			reads("status", pipeline.TaskAbandoned),
			reads("status", pipeline.TaskCancelled),
		),
		known(),
	)
}

// Redrive gives a task attempts back and reopens its job, both or neither.
func (s *Store) Redrive(ctx context.Context, w pipeline.RedriveWrite) (pipeline.Task, pipeline.Job, error) {
	if err := jobFits(w.Reopened); err != nil {
		return pipeline.Task{}, pipeline.Job{}, err
	}
	if w.Job.Status.Ended() {
		if err := s.Unmark(ctx, w.Job.ID); err != nil {
			return pipeline.Task{}, pipeline.Job{}, named("redrive", err)
		}
	}
	err := s.transact(ctx,
		updateIn(update(s.rows, taskKey(w.Task.Ref), redrivable(w.Task), reopen(w)...)),
		putIn(put(s.rows, s.jobItem(w.Reopened), sameJob(w.Job))),
	)
	if err != nil {
		return pipeline.Task{}, pipeline.Job{}, s.notRedriven(ctx, w.Task.Ref, explainCancelled(ctx, err))
	}
	if w.Job.Status.Ended() {
		err = s.Unmark(ctx, w.Job.ID) // a reaper may have been marking meanwhile
	}
	row, readErr := s.Task(ctx, w.Task.Ref)
	if err := errors.Join(err, readErr); err != nil {
		return pipeline.Task{}, pipeline.Job{}, named("redrive, which landed", err)
	}
	return row, w.Reopened, nil
}

// reopen sets what a redrive sets. Bodies of stages that do not stay accepted are not read any more.
func reopen(w pipeline.RedriveWrite) []change {
	return []change{
		set("status", string(pipeline.TaskPending)),
		set("generation", w.Task.Generation+1),
		set("attempts", int64(0)),
		set("deferrals", int64(0)),
		set("losses", int64(0)),
		set("rings", int64(0)),
		set("accepted", int64(w.Accepted)),
		set("max_tries", int64(w.MaxTries)),
		set("ready_at", int64(w.Now)),
		set(DueAtKey, int64(w.Now)),
		set("buried", false),
		set(DueShardKey, shardOf(w.Task.Ref)),
	}
}

// notRedriven shows the task's row with a refusal, whichever of the two rows refused.
func (s *Store) notRedriven(ctx context.Context, ref pipeline.Ref, err error) error {
	if !isFenced(err) {
		return named("redrive "+ref.String(), err)
	}
	row, readErr := s.get(ctx, s.rows, taskKey(ref))
	if readErr != nil {
		return fmt.Errorf("redrive %s was refused, and its row could not be read: %w", ref, readErr)
	}
	return conditionError("redrive", ref, row)
}
