//go:build localstack

package dynamostore_test

import (
	"strconv"
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

const days = 24 * time.Hour

// endsOf is when each row of the checkpoints table whose partition begins so may go, in seconds; 0 = never.
func endsOf(t *testing.T, client *dynamodb.Client, stack, partition string) []int64 {
	t.Helper()
	_, checkpoints := dynamostore.Tables(stack)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(checkpoints.Name)})
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for _, row := range out.Items {
		if !strings.HasPrefix(row[dynamostore.PartitionKey].(*types.AttributeValueMemberS).Value, partition) {
			continue
		}
		end := int64(0)
		if ttl, is := row[dynamostore.TTLKey].(*types.AttributeValueMemberN); is {
			end, _ = strconv.ParseInt(ttl.Value, 10, 64)
		}
		ends = append(ends, end)
	}
	return ends
}

func TestRetention(t *testing.T) {
	client := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, client)
	now := keeping.Now()
	store := dynamostore.New(client, stack, dynamostore.Keeping{For: 90 * days, Now: func() pipeline.Instant { return now }})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const items = 60 // more than one batch
	check := func(when string, want int64) {
		t.Helper()
		got := endsOf(t, client, stack, "job#job-1")
		if len(got) != items {
			t.Fatalf("%s: %d items are there, want %d", when, len(got), items)
		}
		for _, end := range got {
			if end != want {
				t.Fatalf("%s: an item goes at %d, want %d", when, end, want)
			}
		}
	}
	job := pipelinetest.NewJob("job-1")
	_, _, err := store.Submit(t.Context(), job, pipelinetest.NewRow(job.ID, pipeline.SplitTask))
	must(err)
	for n := range items {
		must(store.PutItem(t.Context(), job.ID, pipeline.BodyKey(pipeline.WorkTask(n), 1, 1), []byte(strings.Repeat("body ", 1000*(n%2)))))
	}
	check("the job is open", 0)
	rows := []pipeline.Task{pipelinetest.NewRow(job.ID, pipeline.WorkTask(0)), pipelinetest.NewRow(job.ID, pipeline.FinalizeTask(1))}
	_, err = store.PutTasks(t.Context(), rows)
	must(err)
	end := func(row pipeline.Task, status pipeline.TaskStatus) pipeline.Task {
		t.Helper()
		row, err := store.Claim(t.Context(), pipelinetest.ClaimOf(row, "A", pipelinetest.T0))
		must(err)
		row, err = store.End(t.Context(), pipelinetest.EndOf(row, pipeline.Verdict{Status: status}, pipeline.Failure{}, pipelinetest.T0))
		must(err)
		return row
	}
	abandoned := end(rows[0], pipeline.TaskAbandoned)
	check("its last task has ended", 0)
	over := job
	over.Status, over.Result = pipeline.JobPartial, "result"
	_, err = store.SetJob(t.Context(), job, over)
	must(err)
	end(rows[1], pipeline.TaskDone)
	check("its finalize is done", now.Add(90*days).Time().Unix())
	now = now.Add(30 * days)
	reopened := job
	reopened.Epoch++
	_, _, err = store.Redrive(t.Context(), pipeline.RedriveWrite{Task: abandoned, Job: over, Reopened: reopened, Now: now})
	must(err)
	check("it is redriven", 0)
	late := pipelinetest.NewRow(job.ID, pipeline.FinalizeTask(2))
	_, err = store.PutTasks(t.Context(), []pipeline.Task{late})
	must(err)
	end(late, pipeline.TaskDone)
	check("a finalize is done that a redrive overtook", 0)
	failed := reopened
	failed.Status = pipeline.JobFailed
	_, err = store.SetJob(t.Context(), reopened, failed)
	must(err)
	check("it is failed without a finalize", now.Add(90*days).Time().Unix())
}

func TestRetentionOfReplies(t *testing.T) {
	client := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, client)
	now := keeping.Now()
	store := dynamostore.New(client, stack, dynamostore.Keeping{For: 90 * days, Now: func() pipeline.Instant { return now }})
	put := func(text string) string {
		t.Helper()
		stands, err := store.PutReply(t.Context(), pipeline.Reply{Key: "key", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return stands.Text
	}
	check := func(when, want string) {
		t.Helper()
		found, left, err := store.Replies(t.Context(), []pipeline.ReplyKey{"key"})
		if err != nil || len(left) != 0 {
			t.Fatal(left, err)
		}
		if got := found["key"].Text; got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	put("first")
	for n := range 5 { // of which each is within the time since the last
		now = now.Add(60 * days)
		check("it is used again and again", "first")
		if got, want := endsOf(t, client, stack, "reply#")[0], now.Add(90*days).Time().Unix(); got != want {
			t.Errorf("used %d times: it goes at %d, want %d", n+1, got, want)
		}
	}
	if got := put("second"); got != "first" {
		t.Errorf("got %q, want the one that stands", got)
	}
	now = now.Add(40 * days)
	before := endsOf(t, client, stack, "reply#")[0]
	check("more than half of its time is left", "first")
	if got := endsOf(t, client, stack, "reply#")[0]; got != before {
		t.Error("a reply with more than half of its time left was written")
	}
	now = now.Add(50 * days)
	check("its time is over, and it was not deleted yet", "")
	if got := put("third"); got != "third" {
		t.Errorf("got %q, want what was paid for now", got)
	}
	check("it was asked again", "third")
}
