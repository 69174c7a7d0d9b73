package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func memoryHarness(around Around) Harness {
	store := memory.New()
	h := Harness{
		Store: store, Blobs: store,
		Raw:    func(_ testing.TB, ref pipeline.Ref, columns map[string]any) { _ = store.PutRaw(ref, columns) },
		Delete: func(_ testing.TB, ref pipeline.Ref) { store.DeleteTask(ref) },
	}
	if around != nil {
		h.Store = Wrap(store, around)
	}
	return h
}

// A bench that notices nothing proves nothing: the differential must play every write, with success and with refusal,
// and must notice a store that quietly does not do one of them.
func TestDifferential(t *testing.T) {
	var mu sync.Mutex
	landed, refused := map[string]int{}, map[string]int{}
	spy := func(ctx context.Context, op Op, do func(context.Context) error) error {
		err := do(ctx)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && op.Write {
			landed[op.Name]++
		} else if errors.Is(err, pipeline.ErrFenced) {
			refused[op.Name]++
		}
		return err
	}
	for seed := range uint64(10) {
		Differential(t, seed, 1000, memoryHarness(spy), memoryHarness(nil))
	}
	for _, op := range []string{
		"Submit", "SetJob", "PutTasks", "Claim", "Renew", "Checkpoint", "End", "Redrive", "Expire", "Ring", "Postpone", "Unpark",
		"Close", "Buried", "PutItem", "PutItemOnce", "PutReply", "PutFindings", "OpenBudget", "RaiseBudget", "Reserve", "Settle",
		"TakeSlot", "Refund", "Penalise", "Strike", "CloseBreaker",
	} {
		t.Run(op+" is played, and missed", func(t *testing.T) {
			if landed[op] == 0 {
				t.Fatal("it never landed")
			}
			never := func(ctx context.Context, o Op, do func(context.Context) error) error {
				if o.Name == op {
					return nil
				}
				return do(ctx)
			}
			missed := false
			for seed := range uint64(5) {
				missed = missed || differ(t, seed, 1000, memoryHarness(nil), memoryHarness(never)) != nil
			}
			if !missed {
				t.Error("a store that does not do it was not noticed")
			}
		})
	}
	for _, op := range []string{"SetJob", "Claim", "Renew", "Checkpoint", "End", "Redrive", "Expire", "Ring", "Postpone", "Unpark", "Close", "Buried"} {
		if refused[op] == 0 {
			t.Errorf("%s was never refused", op)
		}
	}
}

func TestFaults(t *testing.T) {
	ctx := t.Context()
	put := func(s pipeline.Store, key string) error { return s.PutItem(ctx, "job-1", key, []byte(key)) }
	has := func(s pipeline.Store, key string) bool {
		_, err := s.Item(ctx, "job-1", key)
		return err == nil
	}
	t.Run("a lost answer leaves the write", func(t *testing.T) {
		store := memory.New()
		lossy := Lossy(store, 1, "PutItem")
		if err := put(lossy, "a"); !errors.Is(err, pipeline.ErrBusy) || !has(store, "a") {
			t.Errorf("got error %v, stored %v; want ErrBusy, and stored", err, has(store, "a"))
		}
		if err := put(lossy, "b"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a lost write leaves nothing", func(t *testing.T) {
		store := memory.New()
		if err := put(Wrap(store, LoseWrites(1)), "a"); !errors.Is(err, pipeline.ErrBusy) || has(store, "a") {
			t.Errorf("got error %v, stored %v; want ErrBusy, and not stored", err, has(store, "a"))
		}
	})
	t.Run("a late write arrives when it is released", func(t *testing.T) {
		store := memory.New()
		late := NewLate(1, "PutItem")
		slow := Wrap(store, late.Around)
		if err := put(slow, "a"); !errors.Is(err, pipeline.ErrBusy) || has(slow, "a") {
			t.Errorf("got error %v, stored %v; want ErrBusy, and not stored", err, has(slow, "a"))
		}
		if errs := late.Release(ctx); len(errs) != 1 || errs[0] != nil || !has(slow, "a") {
			t.Errorf("got %v, stored %v; want one write, and stored", errs, has(slow, "a"))
		}
	})
	t.Run("a counter numbers the writes and may stand in their place", func(t *testing.T) {
		store := memory.New()
		counter := &Counter{
			Before: func(n int, _ Op) error { return map[int]error{2: ErrKilled}[n] },
			After:  func(n int, _ Op, _ error) error { return map[int]error{3: ErrKilled}[n] },
		}
		counted := Wrap(store, counter.Around)
		var got []error
		for _, key := range []string{"a", "b", "c", "d"} {
			got = append(got, put(counted, key))
		}
		if want := []error{nil, ErrKilled, ErrKilled, nil}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if !has(counted, "a") || has(counted, "b") || !has(counted, "c") || counter.Count() != 4 {
			t.Errorf("got a %v, b %v, c %v, count %d; want only b missing and 4 writes", has(counted, "a"), has(counted, "b"), has(counted, "c"), counter.Count())
		}
	})
	t.Run("queues and blobs are wrapped too", func(t *testing.T) {
		queue := WrapQueue(memory.NewQueue(memory.QueueConfig{}), LoseAnswers(1, "Send"))
		_, err := queue.Send(ctx, []pipeline.Message{message(1)})
		got, received := queue.Receive(ctx, 1, 0)
		if !errors.Is(err, pipeline.ErrBusy) || received != nil || len(got) != 1 {
			t.Errorf("got error %v, then %d deliveries, error %v; want ErrBusy, then 1", err, len(got), received)
		}
		blobs := WrapBlobs(memory.New(), LoseWrites(1, "PutBlob"))
		lost, kept := blobs.PutBlob(ctx, "a", nil), blobs.PutBlob(ctx, "b", nil)
		_, missing := blobs.Blob(ctx, "a")
		if !errors.Is(lost, pipeline.ErrBusy) || kept != nil || !errors.Is(missing, pipeline.ErrNotFound) {
			t.Errorf("got %v, %v, %v; want ErrBusy, nil, ErrNotFound", lost, kept, missing)
		}
	})
}

func TestDefinitionsAreValid(t *testing.T) {
	for stages := 1; stages <= 3; stages++ {
		for calls := 1; calls <= 4; calls++ {
			d := NewDefinition(stages, calls)
			if err := d.Validate(); err != nil {
				t.Errorf("%d stages of %d calls: %v", stages, calls, err)
			}
			if got := d.Calls(); got != stages*calls {
				t.Errorf("got %d calls, want %s", got, fmt.Sprint(stages*calls))
			}
		}
	}
}
