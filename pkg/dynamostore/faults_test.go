//go:build localstack

package dynamostore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// bench is one row behind a proxy.
type bench struct {
	*testing.T
	pipelinetest.Harness
	proxy *pipelinetest.Proxy
	row   pipeline.Task
}

func newBench(t *testing.T) *bench {
	h, p := proxied(t)
	b := &bench{T: t, Harness: h, proxy: p, row: pipelinetest.NewRow("job-1", pipeline.WorkTask(1))}
	if _, err := h.Store.PutTasks(t.Context(), []pipeline.Task{b.row}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) stands() pipeline.Task {
	b.Helper()
	row, err := b.Store.Task(b.Context(), b.row.Ref)
	b.must(err)
	return row
}

func (b *bench) claim(worker string) (pipeline.Task, error) {
	return b.Store.Claim(b.Context(), pipelinetest.ClaimOf(b.row, worker, pipelinetest.T0))
}

// What the update of a claim, and of a renewal, contains.
var (
	claims   = pipelinetest.OpCalls("UpdateItem", "claimed_at")
	renewals = pipelinetest.OpCalls("UpdateItem", "stage_at")
	ends     = pipelinetest.OpCalls("UpdateItem", "ended_by")
)

func TestFaults(t *testing.T) {
	t.Run("a claim that landed and whose answer was lost is won, once", func(t *testing.T) {
		b := newBench(t)
		b.proxy.Drop(1, claims)
		won, err := b.claim("A")
		b.must(err)
		if won.ClaimedBy != "A" || won.Generation != 1 || won.Attempts != 1 {
			t.Errorf("got %s, want A's first attempt of generation 1", pipeline.Encode(won))
		}
	})
	t.Run("a claim that never arrived and was sent again after another won is refused", func(t *testing.T) {
		b := newBench(t)
		b.proxy.Around(1, claims, func(func()) (cut bool) {
			_, err := b.claim("B")
			b.must(err)
			return true
		})
		_, err := b.claim("A")
		if old, is := pipeline.Old(err); !is || old == nil || old.ClaimedBy != "B" {
			t.Errorf("got error %v, want a refusal that shows B's claim", err)
		}
	})
	t.Run("a claim whose answers are all lost is busy, and known as our own afterwards", func(t *testing.T) {
		b := newBench(t)
		b.proxy.Drop(-1, claims)
		_, err := b.claim("A")
		if !errors.Is(err, pipeline.ErrBusy) || errors.Is(err, pipeline.ErrFenced) {
			t.Errorf("got error %v, want ErrBusy and no refusal", err)
		}
		b.proxy.Clear()
		_, err = b.claim("A")
		old, _ := pipeline.Old(err)
		if w := pipelinetest.ClaimOf(b.row, "A", pipelinetest.T0); !w.Landed(old, 0, pipeline.DefaultPolicy()) {
			t.Errorf("got %v, want the row that shows our claim", err)
		}
	})
	t.Run("a request is sent a bounded number of times", func(t *testing.T) {
		b := newBench(t)
		for code, status := range map[string]int{
			"ProvisionedThroughputExceededException": http.StatusBadRequest, "ThrottlingException": http.StatusBadRequest,
			"InternalServerError": http.StatusInternalServerError, "ServiceUnavailable": http.StatusServiceUnavailable,
		} {
			b.proxy.Clear()
			b.proxy.Fail(-1, claims, status, code)
			before := b.proxy.Seen("UpdateItem")
			_, err := b.claim("A")
			if n := b.proxy.Seen("UpdateItem") - before; n != 4 || !errors.Is(err, pipeline.ErrBusy) {
				t.Errorf("%s: sent %d times, error %v; want 4 times, then ErrBusy", code, n, err)
			}
		}
		if row := b.stands(); row.Generation != 0 {
			t.Errorf("the row is at generation %d, want 0", row.Generation)
		}
	})
	t.Run("a throttled renewal is made by the SDK's next sending", func(t *testing.T) {
		b := newBench(t)
		row, err := b.claim("A")
		b.must(err)
		b.proxy.Fail(2, renewals, http.StatusBadRequest, "ProvisionedThroughputExceededException")
		w := pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: row.ExpiresAt + 5000, Allowed: 10}
		renewed, err := b.Store.Renew(b.Context(), w)
		if err != nil || renewed.ExpiresAt != w.Expires {
			t.Errorf("got expiry %s, error %v; want %s", renewed.ExpiresAt, err, w.Expires)
		}
	})
	t.Run("a conflict with a transaction is no refusal", func(t *testing.T) {
		b := newBench(t)
		b.proxy.Fail(2, claims, http.StatusBadRequest, "TransactionConflictException")
		_, err := b.claim("A")
		b.must(err)
		b.proxy.Fail(-1, claims, http.StatusBadRequest, "TransactionConflictException")
		_, err = b.claim("B")
		if !errors.Is(err, pipeline.ErrConflict) || errors.Is(err, pipeline.ErrFenced) {
			t.Errorf("got error %v, want ErrConflict and no refusal", err)
		}
	})
	t.Run("a refusal is one, whatever its status, and shows the row", func(t *testing.T) {
		for _, status := range []int{http.StatusBadRequest, http.StatusConflict} {
			b := newBench(t)
			b.proxy.Fail(1, claims, status, "ConditionalCheckFailedException")
			_, err := b.claim("A")
			if old, is := pipeline.Old(err); !is || old == nil || old.Ref != b.row.Ref {
				t.Errorf("status %d: got error %v, want a refusal that shows the row", status, err)
			}
		}
	})
	t.Run("a key that is throttled loses no reply", func(t *testing.T) { // D-09
		b := newBench(t)
		n := 0
		b.proxy.Fail(-1, func(c pipelinetest.Call) bool {
			if !c.Has("PutItem", "reply#") {
				return false
			}
			n++
			return n%2 == 1
		}, http.StatusBadRequest, "ThrottlingException")
		for i := range 20 {
			_, err := b.Store.PutReply(b.Context(), pipeline.Reply{Key: pipeline.ReplyKey(fmt.Sprint(i)), Text: "{}"})
			b.must(err)
		}
		for i := range 20 {
			key := pipeline.ReplyKey(fmt.Sprint(i))
			if found, _, err := b.Store.Replies(b.Context(), []pipeline.ReplyKey{key}); err != nil || len(found) != 1 {
				t.Errorf("reply %d: got %d, error %v", i, len(found), err)
			}
		}
	})
	t.Run("a late copy of a renewal, an end and a failure disturb no later claim", func(t *testing.T) {
		for name, c := range map[string]struct {
			held pipelinetest.Matching
			do   func(b *bench, row pipeline.Task) error
		}{
			"renewal": {renewals, func(b *bench, row pipeline.Task) error {
				_, err := b.Store.Renew(b.Context(), pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: row.ExpiresAt + 1_000_000})
				return err
			}},
			"release on shutdown": {ends, func(b *bench, row pipeline.Task) error {
				_, err := b.Store.End(b.Context(), pipelinetest.EndOf(row, pipeline.Verdict{Status: pipeline.TaskPending}, pipeline.Fail(pipeline.Shutdown, "stop"), pipelinetest.T0))
				return err
			}},
			"abandon": {ends, func(b *bench, row pipeline.Task) error {
				_, err := b.Store.End(b.Context(), pipelinetest.EndOf(row, pipeline.Verdict{Status: pipeline.TaskAbandoned}, pipeline.Fail(pipeline.Invalid, "no"), pipelinetest.T0))
				return err
			}},
		} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t)
				row, err := b.claim("A")
				b.must(err)
				b.proxy.Lose(3, c.held) // all but the last sending never arrive
				held := b.proxy.Hold(c.held)
				if err := c.do(b, row); !errors.Is(err, pipeline.ErrBusy) {
					t.Fatalf("got error %v, want ErrBusy", err)
				}
				now := row.ExpiresAt.Add(pipeline.DefaultPolicy().MaxSkew) + 1
				expired, err := b.Store.Expire(b.Context(), pipelinetest.ExpireOf(row, pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1}, now))
				b.must(err)
				next, err := b.Store.Claim(b.Context(), pipelinetest.ClaimOf(expired, "B", now))
				b.must(err)
				held.Release()
				if got := b.stands(); string(pipeline.Encode(got)) != string(pipeline.Encode(next)) {
					t.Errorf("the row is %s, want B's claim as it was: %s", pipeline.Encode(got), pipeline.Encode(next))
				}
			})
		}
	})
	t.Run("keys that were not processed are returned, and read on in a page of rows", func(t *testing.T) {
		b := newBench(t)
		reply := pipeline.Reply{Key: "key-1", Text: "{}"}
		_, err := b.Store.PutReply(b.Context(), reply)
		b.must(err)
		b.proxy.Rewrite(2, pipelinetest.OpCalls("BatchGetItem"), unprocessed)
		found, left, err := b.Store.Replies(b.Context(), []pipeline.ReplyKey{"key-1"})
		if err != nil || len(found) != 0 || len(left) != 1 || left[0] != "key-1" {
			t.Errorf("got %v, unprocessed %v, error %v; want key-1 unprocessed", found, left, err)
		}
		rows, _, err := b.Store.Due(b.Context(), b.row.DueShard(), b.row.DueAt, "")
		if err != nil || len(rows) != 1 {
			t.Errorf("got %d rows due, error %v; want the one, after a second reading", len(rows), err)
		}
		b.proxy.Clear()
		if found, left, err := b.Store.Replies(b.Context(), left); err != nil || len(left) != 0 || found["key-1"] != reply {
			t.Errorf("got %v, unprocessed %v, error %v; want the reply", found, left, err)
		}
	})
	t.Run("rows of a batch that were not put are returned, and the rest is there", func(t *testing.T) {
		b := newBench(t)
		b.proxy.Fail(-1, pipelinetest.OpCalls("PutItem", "work#00007"), http.StatusBadRequest, "ThrottlingException")
		var rows []pipeline.Task
		for n := range 10 {
			rows = append(rows, pipelinetest.NewRow("job-2", pipeline.WorkTask(n)))
		}
		left, err := b.Store.PutTasks(b.Context(), rows)
		if err != nil || len(left) != 1 || left[0].ID != pipeline.WorkTask(7) {
			t.Errorf("got %d unprocessed, error %v; want work#00007 alone", len(left), err)
		}
		all, _, err := b.Store.Tasks(b.Context(), "job-2", "")
		if err != nil || len(all) != 9 {
			t.Errorf("got %d rows, error %v; want 9", len(all), err)
		}
	})
	t.Run("money whose reservation got no answer is taken once", func(t *testing.T) {
		b := newBench(t)
		b.must(b.Store.OpenBudget(b.Context(), "job-1", 100))
		b.proxy.Drop(1, pipelinetest.OpCalls("UpdateItem", "budget"))
		r := pipeline.Reservation{Task: "work#00001", Generation: 1, Stage: 1, Amount: 60}
		got, err := b.Store.Reserve(b.Context(), "job-1", r)
		if err != nil || got.Remaining != 40 || len(got.Open) != 1 {
			t.Errorf("got %s, error %v; want 40 remaining and one reservation", pipeline.Encode(got), err)
		}
	})
	t.Run("a store that never answers is busy within its own time", func(t *testing.T) {
		b := newBench(t)
		stop := make(chan struct{})
		b.proxy.Around(-1, claims, func(func()) bool { <-stop; return true })
		defer close(stop)
		begun := time.Now()
		_, err := b.claim("A")
		if !errors.Is(err, pipeline.ErrBusy) {
			t.Errorf("got error %v after %v, want ErrBusy", err, time.Since(begun))
		}
	})
}

// unprocessed turns what was found into keys that were not processed.
func unprocessed(answer []byte) []byte {
	var got struct {
		Responses map[string][]map[string]json.RawMessage
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return answer
	}
	keys := map[string]any{}
	for table, rows := range got.Responses {
		var all []map[string]json.RawMessage
		for _, row := range rows {
			all = append(all, map[string]json.RawMessage{"pk": row["pk"], "sk": row["sk"]})
		}
		keys[table] = map[string]any{"Keys": all}
	}
	body, _ := json.Marshal(map[string]any{"Responses": map[string]any{}, "UnprocessedKeys": keys})
	return body
}

// Whatever cancelled a transaction is told apart.
func TestCaseD07TransactionReasons(t *testing.T) {
	for reasons, want := range map[string]error{
		"TransactionConflict,None":                             pipeline.ErrConflict,
		"ConditionalCheckFailed,None":                          pipeline.ErrFenced,
		"None,ConditionalCheckFailed":                          pipeline.ErrFenced,
		"ConditionalCheckFailed,TransactionConflict":           pipeline.ErrConflict,
		"None,ThrottlingError":                                 pipeline.ErrBusy,
		"ThrottlingError,TransactionConflict":                  pipeline.ErrBusy,
		"ValidationError,TransactionConflict":                  nil, // as it is
		"ProvisionedThroughputExceeded,ConditionalCheckFailed": pipeline.ErrBusy,
		"": pipeline.ErrBusy,
	} {
		t.Run(reasons, func(t *testing.T) {
			b := newBench(t)
			job := pipelinetest.NewJob("job-1", func(j *pipeline.Job) { j.Status = pipeline.JobPartial })
			b.proxy.Answer(-1, pipelinetest.OpCalls("TransactWriteItems"), http.StatusBadRequest, cancelledBy(reasons))
			_, _, err := b.Store.Redrive(b.Context(), pipeline.RedriveWrite{Task: b.row, Job: job, Reopened: job, Now: pipelinetest.T0})
			for _, other := range []error{pipeline.ErrConflict, pipeline.ErrFenced, pipeline.ErrBusy} {
				if errors.Is(err, other) != (other == want) {
					t.Errorf("got error %v, want %v", err, want)
				}
			}
			if err == nil {
				t.Error("got no error")
			}
		})
	}
}

func cancelledBy(reasons string) []byte {
	var list []map[string]string
	if reasons != "" {
		for _, code := range strings.Split(reasons, ",") {
			list = append(list, map[string]string{"Code": code, "Message": "said by the test"})
		}
	}
	body, _ := json.Marshal(map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": fmt.Sprintf("cancelled: [%s]", reasons), "CancellationReasons": list,
	})
	return body
}
