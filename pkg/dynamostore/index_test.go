//go:build localstack

package dynamostore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// indexed is how many rows the due index holds.
func indexed(t *testing.T, client *dynamodb.Client, stack string) int {
	t.Helper()
	rows, _ := dynamostore.Tables(stack)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(rows.Name), IndexName: aws.String(dynamostore.DueIndex)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items)
}

// A row leaves the due index when it ends: otherwise each sweep would read every row that ever was.
func TestIndexIsSparse(t *testing.T) {
	client := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, client)
	store := dynamostore.New(client, stack, keeping)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want int) {
		t.Helper()
		if got := indexed(t, client, stack); got != want {
			t.Errorf("%s: the index holds %d rows, want %d", when, got, want)
		}
	}
	job := pipelinetest.NewJob("job-1")
	rows := make([]pipeline.Task, 4)
	for n := range rows {
		rows[n] = pipelinetest.NewRow(job.ID, pipeline.WorkTask(n))
	}
	_, err := store.PutTasks(t.Context(), rows)
	must(err)
	check("four rows are born", 4)
	end := func(row pipeline.Task, status pipeline.TaskStatus) pipeline.Task {
		t.Helper()
		row, err := store.Claim(t.Context(), pipelinetest.ClaimOf(row, "A", pipelinetest.T0))
		must(err)
		row, err = store.End(t.Context(), pipelinetest.EndOf(row, pipeline.Verdict{Status: status}, pipeline.Failure{}, pipelinetest.T0))
		must(err)
		return row
	}
	end(rows[0], pipeline.TaskDone)
	check("one is done", 3)
	_, err = store.Close(t.Context(), pipeline.CloseWrite{Seen: rows[1], Status: pipeline.TaskCancelled})
	must(err)
	check("one is cancelled", 2)
	abandoned := end(rows[2], pipeline.TaskAbandoned)
	check("one is abandoned, its dead letter not sent", 2)
	must(store.Buried(t.Context(), abandoned.Ref, abandoned.Generation))
	check("it is buried", 1)
	_, _, err = store.Submit(t.Context(), job, pipelinetest.NewRow(job.ID, pipeline.SplitTask))
	must(err)
	check("a job and its split", 3)
	_, _, err = store.Redrive(t.Context(), pipeline.RedriveWrite{Task: abandoned, Job: job, Reopened: job, Now: pipelinetest.T0})
	must(err)
	check("the abandoned is redriven", 4)
	over := job
	over.Status = pipeline.JobCompleted
	_, err = store.SetJob(t.Context(), job, over)
	must(err)
	check("the job is over, and what it left has no end yet", 4)
	must(store.Mark(t.Context(), over))
	check("it has its end", 3)
}

// What comes between the sight of a model's line and its change is not passed over.
func TestLineChangedInBetween(t *testing.T) {
	h, proxy := proxied(t)
	until := pipelinetest.T0.Add(3 * time.Second)
	direct := 0
	swaps := func(c pipelinetest.Call) bool { // the second update of a slot: the first found the line idle
		return c.Has("UpdateItem", "arrival", "limit#") && !c.Has("", "if_not_exists")
	}
	proxy.Around(1, swaps, func(forward func()) bool {
		direct++
		if err := h.Store.Penalise(t.Context(), "model", until); err != nil {
			t.Error(err)
		}
		forward()
		return false
	})
	start, err := h.Store.TakeSlot(t.Context(), pipeline.SlotWrite{Model: "model", Cost: time.Second, Horizon: time.Hour, Now: pipelinetest.T0})
	if err != nil || start != until || direct != 1 {
		t.Errorf("got start %s, error %v, after %d penalties; want %s, after one", start, err, direct, until)
	}
}

// Two who reserve under one key at the same time take once.
func TestReservedInBetween(t *testing.T) {
	h, proxy := proxied(t)
	if err := h.Store.OpenBudget(t.Context(), "job-1", 100); err != nil {
		t.Fatal(err)
	}
	r := pipeline.Reservation{Task: "work#00001", Generation: 1, Stage: 1, Amount: 60}
	other := r
	other.Amount = 30
	proxy.Around(1, pipelinetest.OpCalls("UpdateItem", "open#"), func(forward func()) bool {
		if _, err := h.Store.Reserve(t.Context(), "job-1", other); err != nil {
			t.Error(err)
		}
		forward()
		return false
	})
	if _, err := h.Store.Reserve(t.Context(), "job-1", r); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("got error %v, want ErrFenced: another amount is reserved under this key", err)
	}
	if b, err := h.Store.Budget(t.Context(), "job-1"); err != nil || b.Remaining != 70 {
		t.Errorf("got %d remaining, error %v; want 70", b.Remaining, err)
	}
}
