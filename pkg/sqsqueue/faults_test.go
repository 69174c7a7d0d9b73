//go:build localstack

package sqsqueue_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/sqsqueue"
)

// proxied is a queue that reaches the service through a proxy.
func proxied(t *testing.T) (*sqsqueue.Queue, *pipelinetest.Proxy) {
	t.Helper()
	p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.All))
	return open(t, clientOf(t, awsclient.Settings{Endpoint: p.URL}), policyOf(60*time.Second, 3)), p
}

func messages(n int) (all []pipeline.Message) {
	for i := range n {
		all = append(all, pipeline.Message{Job: "job-1", Task: pipeline.WorkTask(i), Tenant: "tenant é", Generation: 1})
	}
	return all
}

func TestCaseS07BatchesThatSucceedInPart(t *testing.T) {
	t.Run("what SQS did not take is returned, whoever's fault it was", func(t *testing.T) {
		q, p := proxied(t)
		p.Answer(1, pipelinetest.OpCalls("SendMessageBatch"), http.StatusOK, []byte(`{"Successful":[],
			"Failed":[{"Id":"3","SenderFault":true,"Code":"InvalidMessageContents"},{"Id":"7","SenderFault":false,"Code":"InternalError"}]}`))
		failed, err := q.Send(t.Context(), messages(10))
		if err != nil || len(failed) != 2 || failed[0].Task != pipeline.WorkTask(3) || failed[1].Task != pipeline.WorkTask(7) {
			t.Errorf("got %v, error %v; want messages 3 and 7", failed, err)
		}
	})
	t.Run("a send whose answers are all lost is busy, and all of it is returned", func(t *testing.T) {
		q, p := proxied(t)
		p.Drop(-1, pipelinetest.OpCalls("SendMessageBatch"))
		failed, err := q.Send(t.Context(), messages(10))
		if !errors.Is(err, pipeline.ErrBusy) || len(failed) != 10 || p.Seen("SendMessageBatch") != 3 {
			t.Errorf("got %d failed after %d sendings, error %v; want 10 after 3, ErrBusy", len(failed), p.Seen("SendMessageBatch"), err)
		}
	})
	t.Run("what was not deleted is returned, but for old receipts", func(t *testing.T) {
		q, p := proxied(t)
		if _, err := q.Send(t.Context(), messages(3)); err != nil {
			t.Fatal(err)
		}
		var got []pipeline.Delivery
		for len(got) < 3 {
			some, err := q.Receive(t.Context(), 10, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, some...)
		}
		p.Answer(1, pipelinetest.OpCalls("DeleteMessageBatch"), http.StatusOK, []byte(`{"Successful":[{"Id":"0"}],
			"Failed":[{"Id":"1","SenderFault":false,"Code":"InternalError"},{"Id":"2","SenderFault":true,"Code":"ReceiptHandleIsInvalid"}]}`))
		failed, err := q.Delete(t.Context(), got)
		if err != nil || len(failed) != 1 || failed[0].Receipt != got[1].Receipt {
			t.Errorf("got %d failed, error %v; want the second alone", len(failed), err)
		}
	})
}

func TestCaseS06ReceiptsAndTimes(t *testing.T) {
	q, p := proxied(t)
	if _, err := q.Send(t.Context(), messages(1)); err != nil {
		t.Fatal(err)
	}
	got, err := q.Receive(t.Context(), 1, 5*time.Second)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %d deliveries, error %v", len(got), err)
	}
	t.Run("a receipt that counts no more, in every spelling, is no error", func(t *testing.T) {
		for _, body := range []string{
			`{"__type":"com.amazonaws.sqs#ReceiptHandleIsInvalid","message":"The input receipt handle is invalid."}`,
			`{"__type":"com.amazonaws.sqs#MessageNotInflight","message":"not in flight"}`,
			`{"__type":"com.amazonaws.sqs#InvalidParameterValueException","message":"Value x for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."}`,
		} {
			p.Answer(1, pipelinetest.OpCalls("ChangeMessageVisibility"), http.StatusBadRequest, []byte(body))
			if err := q.Delay(t.Context(), got[0], time.Minute); err != nil {
				t.Errorf("got error %v for %s", err, body)
			}
		}
	})
	t.Run("no time leaves that SQS would refuse", func(t *testing.T) {
		var mu sync.Mutex
		var sent []int
		seconds := func(c pipelinetest.Call) bool {
			var in struct{ VisibilityTimeout int }
			if c.Op == "ChangeMessageVisibility" && json.Unmarshal([]byte(c.Body), &in) == nil {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, in.VisibilityTimeout)
			}
			return false
		}
		p.Drop(-1, seconds)
		for _, after := range []time.Duration{-time.Second, 0, 1500 * time.Millisecond, 20 * time.Hour} {
			if err := q.Delay(t.Context(), got[0], after); err != nil {
				t.Error(err)
			}
		}
		if len(sent) != 4 || sent[0] != 0 || sent[1] != 0 || sent[2] != 2 || sent[3] > 12*60*60-60 {
			t.Errorf("sent %v seconds, want 0, 0, 2 and less than 12 hours", sent)
		}
	})
}

func TestCaseX06DeadLettersAreAllSeen(t *testing.T) {
	q, p := proxied(t)
	const n = 23
	for i := range n {
		if err := q.Bury(t.Context(), pipeline.DeadLetter{Task: pipeline.WorkTask(i), BuriedAt: pipeline.Instant(i + 1), Reason: pipeline.Fail(pipeline.Invalid, "no")}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("two empty receives are not the end", func(t *testing.T) {
		p.Answer(2, pipelinetest.OpCalls("ReceiveMessage"), http.StatusOK, []byte(`{}`))
		letters, next, err := q.DeadLetters(t.Context(), "")
		if err != nil || next != "" || len(letters) != n {
			t.Errorf("got %d letters, cursor %q, error %v; want %d", len(letters), next, err, n)
		}
	})
	t.Run("what may not be read is an error and not an empty list, and what was held is given back", func(t *testing.T) {
		after := 0
		denied := func(c pipelinetest.Call) bool {
			if c.Op == "ReceiveMessage" {
				after++
			}
			return c.Op == "ReceiveMessage" && after == 2
		}
		p.Fail(1, denied, http.StatusForbidden, "AccessDenied")
		if letters, _, err := q.DeadLetters(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("got %d letters, error %v; want access denied", len(letters), err)
		}
		p.Clear()
		if letters, _, err := q.DeadLetters(t.Context(), ""); err != nil || len(letters) != n {
			t.Errorf("got %d letters, error %v; want %d again at once", len(letters), err, n)
		}
	})
	t.Run("a letter with too many records for a message keeps the newest", func(t *testing.T) {
		q, _ := proxied(t)
		letter := pipeline.DeadLetter{Task: pipeline.WorkTask(1), Reason: pipeline.Fail(pipeline.Invalid, "no")}
		for i := range 3000 {
			letter.Context = append(letter.Context, pipeline.Record{Generation: int64(i + 1), Failure: pipeline.Fail(pipeline.Ambiguous, "%s", strings.Repeat("x", 200))})
		}
		if err := q.Bury(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
		letters, _, err := q.DeadLetters(t.Context(), "")
		if err != nil || len(letters) != 1 {
			t.Fatalf("got %d letters, error %v", len(letters), err)
		}
		kept := letters[0].Context
		if len(kept) == 0 || len(kept) == 3000 || kept[len(kept)-1].Generation != 3000 {
			t.Errorf("%d records were kept, the last of generation %d; want the newest", len(kept), kept[len(kept)-1].Generation)
		}
	})
}
