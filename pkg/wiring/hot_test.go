//go:build localstack

package wiring_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// counting is a model that answers at once and knows how often each question was asked.
type counting struct {
	prompt
	mu    sync.Mutex
	asked map[pipeline.ReplyKey]int
}

func (m *counting) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	m.mu.Lock()
	m.asked[r.Key]++
	m.mu.Unlock()
	return m.prompt.Complete(ctx, r)
}

// Case D-09: a job of 500 chunks and twenty who look at it, on a table that refuses whatever is asked too often of one
// key. What is refused is bookkeeping and is made later, alone: every answer is kept, none is asked twice, no claim is
// lost, and the job closes once. (LocalStack with dynoxide; in AWS a key takes a thousand writes a second.)
func TestCaseD09HotPartition(t *testing.T) {
	const chunks, readers = 500, 20
	hot := &pipelinetest.HotKeys{Window: 250, Writes: 40, Reads: 60}
	proxy := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
	proxy.Fail(-1, hot.Hot, 400, "ProvisionedThroughputExceededException")
	stack := awstest.Stack()
	direct := awstest.Clients(t, awstest.DynamoDB, awsclient.Settings{}).DynamoDB()
	awstest.Made(t, dynamostore.Create(t.Context(), direct, stack))
	t.Cleanup(func() { awstest.Removed(t, dynamostore.Delete(context.Background(), direct, stack)) })
	keeping := dynamostore.Keeping{For: pipeline.DefaultPolicy().Retention, Now: pipeline.NewRealClock().Now}
	opened := func() *dynamostore.Store { // as a process of its own
		return dynamostore.New(awstest.Clients(t, awstest.DynamoDB, awsclient.Settings{Endpoint: proxy.URL}).DynamoDB(), stack, keeping)
	}

	p := pipeline.DefaultPolicy()
	p.DeferralBackoff = time.Second
	back := wiring.InMemory(p, pipeline.NewRealClock()) // of which the queues and the blobs
	back.Store = opened()
	model := &counting{asked: map[pipeline.ReplyKey]int{}}
	system := wiring.New(back, wiring.Config{Tenant: "tenant", Worker: "hot", Policy: p, Model: model, Read: ingest.New(ingest.Config{Clock: pipeline.NewRealClock()}).Read, InFlight: 64, Claims: 64, Poll: time.Second, Jitter: half})
	job, _, err := system.Submitter.Submit(t.Context(), submit.Submission{
		Name: "contract.txt", Source: []byte(text(chunks)), Definition: pipelinetest.NewDefinition(1, 1), Model: model.Info(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var group pipeline.Group
	group.Go(func() { system.Worker().Run(context.Background(), ctx) })
	group.Go(func() { system.Reaper.Run(ctx, time.Second) })
	var looks, refused atomic.Int64
	id := job.ID
	for range readers {
		store := opened()
		group.Go(func() {
			for pipeline.NewRealClock().Sleep(ctx, time.Second) == nil {
				looks.Add(1)
				_, err := pipeline.AllTasks(ctx, store, id)
				if err == nil {
					_, err = store.Budget(ctx, id)
				}
				switch {
				case errors.Is(err, pipeline.ErrBusy):
					refused.Add(1)
				case err != nil && ctx.Err() == nil && !errors.Is(err, pipeline.ErrNotFound): // nobody has needed money yet
					t.Error(err)
				}
			}
		})
	}
	begun := time.Now()
	plain := dynamostore.New(direct, stack, keeping)
	for !job.Status.Ended() {
		if err := pipeline.NewRealClock().Sleep(t.Context(), time.Second); err != nil {
			break
		}
		if job, err = plain.Job(t.Context(), job.ID); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	group.Wait()
	t.Logf("LocalStack with dynoxide: %d chunks, %s after %v; %d looks, %d of them refused; refused %v", chunks, job.Status, time.Since(begun).Round(time.Second), looks.Load(), refused.Load(), sums(hot.Refused()))
	for key, n := range hot.Refused() {
		if strings.HasPrefix(key, "write ") && !strings.HasPrefix(key, "write budget ") && !strings.HasPrefix(key, "write plan ") {
			t.Errorf("%s was too hot %d times: only money may have one row that every chunk writes", key, n)
		}
	}
	if looks.Load() == 0 || hot.Refused()["write budget of job#"+string(job.ID)] == 0 {
		t.Error("nobody looked, or nothing was too hot: this run shows nothing")
	}
	checkHot(t, plain, back.Blobs, job, chunks, model)
}

func sums(refused map[string]int) map[string]int {
	all := map[string]int{}
	for key, n := range refused {
		what, _, _ := strings.Cut(key, "#")
		what, _, _ = strings.Cut(what, " of ")
		all[what] += n
	}
	return all
}

func checkHot(t *testing.T, store *dynamostore.Store, blobs pipeline.Blobs, job pipeline.Job, chunks int, model *counting) {
	t.Helper()
	body, err := blobs.Blob(t.Context(), job.Result)
	if err != nil {
		t.Fatalf("the job is %s (%s): %v", job.Status, job.Reason, err)
	}
	result, err := pipeline.Decode[pipeline.Result](body, "result")
	if err != nil || job.Status != pipeline.JobCompleted || result.Counts.Answered != chunks {
		t.Errorf("the job is %s (%s), %d of %d cells are answered, error %v", job.Status, job.Reason, result.Counts.Answered, chunks, err)
	}
	if len(model.asked) != chunks {
		t.Errorf("%d questions were asked, want %d", len(model.asked), chunks)
	}
	for key, n := range model.asked {
		if n != 1 {
			t.Errorf("%s was asked %d times", key, n)
		}
	}
	rows, err := pipeline.AllTasks(t.Context(), store, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	finalizes := 0
	for _, row := range rows {
		switch {
		case row.ID.Kind() == pipeline.TaskFinalize:
			finalizes++
		case row.Status != pipeline.TaskDone || row.Losses > 0:
			t.Errorf("%s is %s after %d losses: %s", row.ID, row.Status, row.Losses, row.Reason)
		}
	}
	if finalizes != 1 {
		t.Errorf("the job was closed by %d finalizes, want one", finalizes)
	}
}
