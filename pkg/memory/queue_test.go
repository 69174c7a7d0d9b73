package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
)

var bell = pipeline.Message{Job: "job-1", Task: pipeline.SplitTask}

// waiting starts a receive and returns when it waits; the result tells how much time it took.
func waiting(t *testing.T, q *memory.Queue, wait time.Duration) (result func() (int, time.Duration)) {
	t.Helper()
	began := time.Now()
	var group pipeline.Group
	var got []pipeline.Delivery
	var err error
	var took time.Duration
	group.Go(func() {
		got, err = q.Receive(t.Context(), 1, wait)
		took = time.Since(began)
	})
	synctest.Wait()
	return func() (int, time.Duration) {
		t.Helper()
		group.Wait()
		if err != nil {
			t.Error(err)
		}
		return len(got), took
	}
}

func TestReceive(t *testing.T) {
	queue := func() *memory.Queue { return memory.NewQueue(memory.QueueConfig{Visibility: time.Minute}) }
	send := func(t *testing.T, q *memory.Queue) {
		t.Helper()
		if _, err := q.Send(t.Context(), []pipeline.Message{bell}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, result func() (int, time.Duration), n int, want time.Duration) {
		t.Helper()
		if got, took := result(); got != n || took != want {
			t.Errorf("got %d deliveries after %v, want %d after %v", got, took, n, want)
		}
	}
	t.Run("one that waits is woken by a message", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := queue()
			result := waiting(t, q, time.Hour)
			send(t, q)
			check(t, result, 1, 0)
		})
	})
	t.Run("one that waits is woken by a body that is no message", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := queue()
			result := waiting(t, q, time.Hour)
			q.SendRaw([]byte("x"))
			check(t, result, 1, 0)
		})
	})
	t.Run("one that waits gets what comes back meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := queue()
			send(t, q)
			check(t, waiting(t, q, 0), 1, 0)
			check(t, waiting(t, q, time.Hour), 1, time.Minute)
		})
	})
	t.Run("one that waits is woken by a delay that ends sooner", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := queue()
			send(t, q)
			all, err := q.Receive(t.Context(), 1, 0)
			if err != nil || len(all) != 1 {
				t.Fatalf("got %d deliveries, error %v; want 1", len(all), err)
			}
			result := waiting(t, q, time.Hour)
			if err := q.Delay(t.Context(), all[0], time.Second); err != nil {
				t.Fatal(err)
			}
			check(t, result, 1, time.Second)
		})
	})
	t.Run("one that waits for nothing ends when its wait is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			check(t, waiting(t, queue(), 3*time.Second), 0, 3*time.Second)
		})
	})
	t.Run("a delay ends twelve hours after the receipt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := queue()
			send(t, q)
			all, err := q.Receive(t.Context(), 1, 0)
			if err != nil || len(all) != 1 {
				t.Fatalf("got %d deliveries, error %v; want 1", len(all), err)
			}
			if err := q.Delay(t.Context(), all[0], 30*time.Hour); err != nil {
				t.Fatal(err)
			}
			check(t, waiting(t, q, 40*time.Hour), 1, 12*time.Hour)
		})
	})
}

func TestPartialBatches(t *testing.T) {
	second := func(_ string, index int) bool { return index == 1 }
	t.Run("rows that could not be tried come back untried", func(t *testing.T) {
		store := memory.New()
		store.Unprocessed = second
		var rows []pipeline.Task
		for n := range 3 {
			rows = append(rows, pipeline.Task{Ref: pipeline.Ref{Job: "job-1", ID: pipeline.WorkTask(n)}})
		}
		unprocessed, err := store.PutTasks(t.Context(), rows)
		stored, _, _ := store.Tasks(t.Context(), "job-1", "")
		if err != nil || len(unprocessed) != 1 || unprocessed[0].ID != rows[1].ID || len(stored) != 2 {
			t.Errorf("got %d unprocessed, %d stored, error %v; want 1, 2", len(unprocessed), len(stored), err)
		}
		found, left, err := store.Replies(t.Context(), []pipeline.ReplyKey{"a", "b"})
		if err != nil || len(found) != 0 || len(left) != 1 || left[0] != "b" {
			t.Errorf("got %d found, %v unprocessed, error %v; want none, b", len(found), left, err)
		}
	})
	t.Run("messages that were not taken come back", func(t *testing.T) {
		q := memory.NewQueue(memory.QueueConfig{Visibility: time.Minute, Failed: second})
		failed, err := q.Send(t.Context(), []pipeline.Message{bell, bell, bell})
		if err != nil || len(failed) != 1 {
			t.Errorf("got %d failed, error %v; want 1", len(failed), err)
		}
		all, err := q.Receive(t.Context(), 10, 0)
		if err != nil || len(all) != 2 {
			t.Fatalf("got %d deliveries, error %v; want 2", len(all), err)
		}
		left, err := q.Delete(t.Context(), all)
		if _, inFlight, _ := q.Depth(t.Context()); err != nil || len(left) != 1 || inFlight != 1 {
			t.Errorf("got %d not removed, %d in flight, error %v; want 1, 1", len(left), inFlight, err)
		}
	})
}
