//go:build localstack

package dynamostore_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// Rows carry the number of their format. A row without one is of the first; one of a number that this version does not
// know is refused by every read and write of it, with what to do, and stays as it is.
func TestARowOfANewerVersionIsRefusedAndLeftAlone(t *testing.T) {
	client := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, client)
	store := dynamostore.New(client, stack, keeping)
	ctx, now := t.Context(), pipelinetest.T0
	rows, _ := dynamostore.Tables(stack)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	job := pipelinetest.NewJob("0123456789-1")
	_, _, err := store.Submit(ctx, job, pipelinetest.NewRow(job.ID, pipeline.SplitTask))
	must(err)
	pending, claimed := pipelinetest.NewRow(job.ID, pipeline.WorkTask(0)), pipelinetest.NewRow(job.ID, pipeline.WorkTask(1))
	ended, parked := pipelinetest.NewRow(job.ID, pipeline.WorkTask(2)), pipelinetest.NewRow(job.ID, pipeline.WorkTask(3))
	parked.Status = pipeline.TaskParked
	_, err = store.PutTasks(ctx, []pipeline.Task{pending, claimed, ended, parked})
	must(err)
	claimed, err = store.Claim(ctx, pipelinetest.ClaimOf(claimed, "worker", now))
	must(err)
	ended, err = store.Claim(ctx, pipelinetest.ClaimOf(ended, "worker", now))
	must(err)
	ended, err = store.End(ctx, pipelinetest.EndOf(ended, pipeline.Verdict{Status: pipeline.TaskAbandoned}, pipeline.Fail(pipeline.Invalid, "no"), now))
	must(err)

	key := func(sort string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			dynamostore.PartitionKey: &types.AttributeValueMemberS{Value: "job#" + string(job.ID)}, dynamostore.SortKey: &types.AttributeValueMemberS{Value: sort},
		}
	}
	stands := func(sort string) map[string]types.AttributeValue {
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(rows.Name), Key: key(sort), ConsistentRead: aws.Bool(true)})
		must(err)
		return out.Item
	}
	format := func(sort, set string) {
		in := &dynamodb.UpdateItemInput{TableName: aws.String(rows.Name), Key: key(sort), UpdateExpression: aws.String("REMOVE #f"), ExpressionAttributeNames: map[string]string{"#f": dynamostore.FormatKey}}
		if set != "" {
			in.UpdateExpression, in.ExpressionAttributeValues = aws.String("SET #f = :f"), map[string]types.AttributeValue{":f": &types.AttributeValueMemberN{Value: set}}
		}
		_, err := client.UpdateItem(ctx, in)
		must(err)
	}
	for _, sort := range []string{"job", "task#split", "task#work#00000"} {
		if v, is := stands(sort)[dynamostore.FormatKey].(*types.AttributeValueMemberN); !is || v.Value != "1" {
			t.Errorf("%s carries %v, want the format 1", sort, stands(sort)[dynamostore.FormatKey])
		}
	}
	sorts := []string{"job", "task#work#00000", "task#work#00001", "task#work#00002", "task#work#00003"}
	before := map[string]map[string]types.AttributeValue{}
	for _, sort := range sorts {
		format(sort, "2")
		before[sort] = stands(sort)
	}
	late := now.Add(time.Hour)
	fence := pipeline.Claim{Task: claimed}.Fence()
	for name, do := range map[string]func() error{
		"Job":  func() error { _, err := store.Job(ctx, job.ID); return err },
		"Task": func() error { _, err := store.Task(ctx, pending.Ref); return err },
		"AllTasks": func() error {
			_, err := pipeline.AllTasks(ctx, store, job.ID)
			return err
		},
		"SetJob": func() error {
			next := job
			next.Status = pipeline.JobCancelling
			_, err := store.SetJob(ctx, job, next)
			return err
		},
		"Submit": func() error {
			_, _, err := store.Submit(ctx, job, pipelinetest.NewRow(job.ID, pipeline.SplitTask))
			return err
		},
		"Claim": func() error { _, err := store.Claim(ctx, pipelinetest.ClaimOf(pending, "worker", now)); return err },
		"Ring": func() error {
			_, err := store.Ring(ctx, pipeline.RingWrite{Seen: pending, Due: late, Count: 1})
			return err
		},
		"Postpone": func() error { _, err := store.Postpone(ctx, pending, late); return err },
		"Close": func() error {
			_, err := store.Close(ctx, pipeline.CloseWrite{Seen: pending, Status: pipeline.TaskCancelled})
			return err
		},
		"Unpark": func() error { _, err := store.Unpark(ctx, parked, now); return err },
		"Renew":  func() error { _, err := store.Renew(ctx, pipeline.RenewWrite{Fence: fence, Expires: late}); return err },
		"Checkpoint": func() error {
			_, err := store.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: fence, Stage: 1})
			return err
		},
		"End": func() error {
			_, err := store.End(ctx, pipelinetest.EndOf(claimed, pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, now))
			return err
		},
		"Expire": func() error {
			_, err := store.Expire(ctx, pipelinetest.ExpireOf(claimed, pipeline.Verdict{Status: pipeline.TaskPending}, late))
			return err
		},
		"Buried": func() error { return store.Buried(ctx, ended.Ref, ended.Generation) },
		"Redrive": func() error {
			_, _, err := store.Redrive(ctx, pipeline.RedriveWrite{Task: ended, Job: job, Reopened: job, MaxTries: 120, Now: now})
			return err
		},
	} {
		err := do()
		if !errors.Is(err, pipeline.ErrNewer) || !strings.Contains(err.Error(), "update what runs this") {
			t.Errorf("%s: got %v, want ErrNewer and what to do", name, err)
		}
	}
	for _, sort := range sorts {
		if after := stands(sort); !reflect.DeepEqual(after, before[sort]) {
			t.Errorf("%s was changed from %v to %v", sort, before[sort], after)
		}
	}
	found := 0
	for shard := range pipeline.DueShards {
		due, _, err := store.Due(ctx, shard, late, "")
		must(err)
		for _, row := range due {
			if row.Newer() != nil {
				found++
			}
		}
	}
	if found != 4 {
		t.Errorf("got %d due rows that say that they are newer, want 4: a reaper is told of them, and tells", found)
	}
	for _, sort := range sorts {
		format(sort, "")
	}
	if _, err := store.Claim(ctx, pipelinetest.ClaimOf(pending, "worker", now)); err != nil {
		t.Errorf("a row without a number is of the first format: got %v", err)
	}
	if _, err := store.Job(ctx, job.ID); err != nil {
		t.Errorf("so is a job: got %v", err)
	}
}
