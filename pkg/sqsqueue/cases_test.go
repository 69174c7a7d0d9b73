//go:build localstack

package sqsqueue_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/sqsqueue"
)

// receive waits for one delivery.
func receive(t *testing.T, q *sqsqueue.Queue) (pipeline.Delivery, pipeline.Message) {
	t.Helper()
	got, err := q.Receive(t.Context(), 1, 10*time.Second)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %d deliveries, error %v", len(got), err)
	}
	m, err := pipeline.DecodeMessage(got[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return got[0], m
}

func remove(t *testing.T, q *sqsqueue.Queue, d pipeline.Delivery) {
	t.Helper()
	if failed, err := q.Delete(t.Context(), []pipeline.Delivery{d}); err != nil || len(failed) > 0 {
		t.Fatalf("delete: %d failed, error %v", len(failed), err)
	}
}

// Case S-09: the messages of one tenant are a group, and one of them that always fails holds up and wears out none of
// the others. What is sent again is delivered again, as soon as it may be.
func TestCaseS09OneOfAGroupHoldsUpNobody(t *testing.T) {
	const receives = 3
	q := open(t, clientOf(t, awsclient.Settings{}), policyOf(60*time.Second, receives))
	if failed, err := q.Send(t.Context(), messages(3)); err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	fails, done := pipeline.WorkTask(0), map[pipeline.TaskID]int{}
	for failures := 0; failures < receives || len(done) < 2; {
		d, m := receive(t, q)
		if m.Task == fails {
			failures++
			if err := q.Delay(t.Context(), d, 0); err != nil {
				t.Fatal(err)
			}
			continue
		}
		done[m.Task] = d.Receives
		remove(t, q, d)
	}
	for task, n := range done {
		if n != 1 {
			t.Errorf("%s was received %d times for another's sake, want once", task, n)
		}
	}
	if got, err := q.Receive(t.Context(), 1, time.Second); err != nil || len(got) != 0 { // SQS moves it only now
		t.Errorf("got %d deliveries, error %v; want none", len(got), err)
	}
	letters, _, err := q.DeadLetters(t.Context(), "")
	if err != nil || len(letters) != 1 || letters[0].Task != fails || !letters[0].Native {
		t.Errorf("got %d dead letters %v, error %v; want that of %s alone, moved by SQS", len(letters), letters, err, fails)
	}
	for range 2 { // the same message, within a minute: by the reaper, by a person
		if failed, err := q.Send(t.Context(), messages(1)); err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
		d, m := receive(t, q)
		if m.Task != fails || d.Receives != 1 {
			t.Errorf("got %s, received %d times; want %s as if it were new", m.Task, d.Receives, fails)
		}
		remove(t, q, d)
	}
}

// A FIFO queue is refused when it is opened, and not met at run time.
func TestCaseS09FIFOQueuesAreRefused(t *testing.T) {
	for n, what := range []string{"the queue", "its dead-letter queue"} {
		p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.All))
		client := clientOf(t, awsclient.Settings{Endpoint: p.URL})
		asked := 0
		p.Answer(1, func(c pipelinetest.Call) bool {
			if c.Op == "GetQueueUrl" {
				asked++
			}
			return c.Op == "GetQueueUrl" && asked == n+1
		}, http.StatusOK, []byte(`{"QueueUrl":"http://127.0.0.1/000000000000/test.fifo"}`))
		p.Answer(1, pipelinetest.OpCalls("GetQueueUrl"), http.StatusOK, []byte(`{"QueueUrl":"http://127.0.0.1/000000000000/test"}`))
		_, err := sqsqueue.Open(t.Context(), client, "stack", "work", sqsqueue.Addresses{}, pipeline.DefaultPolicy())
		if err == nil || !strings.Contains(err.Error(), "test.fifo is a FIFO queue") || !strings.Contains(err.Error(), "make a standard queue") {
			t.Errorf("%s: got error %v, want that it is a FIFO queue, and what to make", what, err)
		}
	}
}

// Case X-05: a message whose receives are used up is dead-lettered by the next receive and not by its time alone. That
// is so in AWS and in LocalStack, and whoever waits for a letter must receive.
func TestCaseX05OnlyAReceiveDeadLetters(t *testing.T) {
	q := open(t, clientOf(t, awsclient.Settings{}), policyOf(60*time.Second, 1))
	if failed, err := q.Send(t.Context(), messages(1)); err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	d, _ := receive(t, q)
	if err := q.Delay(t.Context(), d, 0); err != nil {
		t.Fatal(err)
	}
	if letters, _, err := q.DeadLetters(t.Context(), ""); err != nil || len(letters) != 0 {
		t.Errorf("before a receive there are %d letters, error %v; want none", len(letters), err)
	}
	if visible, inFlight, err := q.Depth(t.Context()); err != nil || visible+inFlight != 1 {
		t.Errorf("before a receive %d are visible and %d in flight, error %v; want it still there", visible, inFlight, err)
	}
	if got, err := q.Receive(t.Context(), 1, 2*time.Second); err != nil || len(got) != 0 {
		t.Errorf("got %d deliveries, error %v; want none: its receives are used up", len(got), err)
	}
	letters, _, err := q.DeadLetters(t.Context(), "")
	if err != nil || len(letters) != 1 || letters[0].Task != pipeline.WorkTask(0) {
		t.Fatalf("after it there are %d letters, error %v; want one", len(letters), err)
	}
	t.Run("looking at a letter neither moves it nor counts", func(t *testing.T) {
		for range 3 {
			if again, _, err := q.DeadLetters(t.Context(), ""); err != nil || len(again) != 1 || again[0].SentAt != letters[0].SentAt {
				t.Errorf("got %d letters, error %v; want the one that was there, as old as its message", len(again), err)
			}
		}
	})
}
