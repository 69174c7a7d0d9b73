package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

const t0 = pipelinetest.T0

func TestStoreEdges(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, t.TempDir(), Config{})

	t.Run("an item may have just as many bytes as an item may have", func(t *testing.T) {
		if err := s.PutItem(ctx, "j", "k", make([]byte, pipeline.MaxItem-1)); err != nil {
			t.Error(err)
		}
		if err := s.PutItem(ctx, "j", "k", make([]byte, pipeline.MaxItem)); !errors.Is(err, pipeline.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
	})

	t.Run("any bytes of an item come back as they were", func(t *testing.T) {
		for _, body := range []string{"", "\x00a\x00", "\xff\xfe", "ü"} {
			if err := s.PutItem(ctx, "j", "bytes", []byte(body)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Item(ctx, "j", "bytes"); err != nil || string(got) != body {
				t.Errorf("got %q, %v, want %q", got, err, body)
			}
		}
	})

	t.Run("a row that has nothing but its status is rung, claimed and capped", func(t *testing.T) {
		ref := pipeline.Ref{Job: "bare", ID: pipeline.WorkTask(1)}
		s.raw(t, ref, map[string]any{"status": pipeline.TaskPending})
		rung, err := s.Ring(ctx, pipeline.RingWrite{Seen: pipeline.Task{Ref: ref}, Count: 1, Due: t0})
		if err != nil || rung.Ring != 1 || rung.Rings != 1 {
			t.Errorf("got %+v, %v, want its first ring", rung, err)
		}
		w := pipelinetest.ClaimOf(pipeline.Task{Ref: ref}, "w", t0)
		w.MaxAttempts = 0
		if _, err := s.Claim(ctx, w); !errors.Is(err, pipeline.ErrFenced) {
			t.Errorf("got %v, want it refused at a cap of 0", err)
		}
		w.MaxAttempts = 1
		if row, err := s.Claim(ctx, w); err != nil || row.Generation != 1 || row.Attempts != 1 {
			t.Errorf("got %+v, %v, want generation and attempts 1", row, err)
		}
	})

	t.Run("a row whose reason and bodies cannot be read hides no other, and goes on", func(t *testing.T) {
		bad := pipelinetest.NewRow("unreadable", pipeline.WorkTask(1), func(r *pipeline.Task) {
			r.Stages, r.Accepted, r.Bodies, r.ReadyAt, r.DueAt = 3, 1, []int64{4}, t0, t0
		})
		good := pipelinetest.NewRow("unreadable", pipeline.WorkTask(2), func(r *pipeline.Task) { r.ReadyAt, r.DueAt = t0, t0 })
		if _, err := s.PutTasks(ctx, []pipeline.Task{bad, good}); err != nil {
			t.Fatal(err)
		}
		for _, stored := range []string{"x", `{"kind": 5}`, `[1, "x"]`, `"x"`} {
			s.sql(t, `UPDATE tasks SET reason = ?1, bodies = ?1 WHERE job = ?2 AND task = ?3`, stored, bad.Job, bad.ID)
			rows, _, err := s.Tasks(ctx, bad.Job, "")
			if err != nil || len(rows) != 2 {
				t.Fatalf("got %d rows, %v, want both", len(rows), err)
			}
			if rows[0].Bodies != nil || rows[0].Body(1) != 0 || rows[0].Accepted != 1 {
				t.Errorf("got bodies %v of %d stages for %s, want none of 1", rows[0].Bodies, rows[0].Accepted, stored)
			}
			if r := rows[0].Reason; r.Kind != pipeline.Broken || !strings.Contains(r.Cause, "the stored reason cannot be read") {
				t.Errorf("got the reason %v, want broken", r)
			}
			due := 0
			for shard := range pipeline.DueShards {
				page, _, err := s.Due(ctx, shard, t0+1, "")
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range page {
					if row.Job == bad.Job {
						due++
					}
				}
			}
			if due != 2 {
				t.Errorf("got %d rows that are due, want 2", due)
			}
		}
		s.sql(t, `UPDATE tasks SET bodies = 'x' WHERE job = ? AND task = ?`, bad.Job, bad.ID)
		row, err := s.Claim(ctx, pipelinetest.ClaimOf(bad, "w", t0))
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range []int{1, 3} {
			if _, err := s.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: stage}); !errors.Is(err, pipeline.ErrFenced) {
				t.Errorf("stage %d: got %v, want it refused", stage, err)
			}
		}
		row, err = s.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: 2})
		if err != nil || row.Accepted != 2 || row.Body(1) != 0 || row.Body(2) != row.Generation {
			t.Errorf("got %+v, %v, want stage 2 accepted and no body of stage 1", row, err)
		}
	})

	t.Run("a reason larger than an item is refused", func(t *testing.T) {
		w := pipeline.EndWrite{Reason: pipeline.Failure{Detail: strings.Repeat("x", pipeline.MaxItem)}}
		if _, err := s.End(ctx, w); !errors.Is(err, pipeline.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
	})

	t.Run("jobs of one moment are all listed, page by page", func(t *testing.T) {
		for _, id := range []pipeline.JobID{"a", "b", "c"} {
			job := pipeline.Job{ID: id, Tenant: "one moment", CreatedAt: 5}
			if _, _, err := s.Submit(ctx, job, pipeline.Task{Ref: pipeline.Ref{Job: id, ID: pipeline.SplitTask}}); err != nil {
				t.Fatal(err)
			}
		}
		listed := ""
		for cursor, pages := "", 0; pages < 3; pages++ {
			jobs, next, err := s.Jobs(ctx, "one moment", cursor, 1)
			if err != nil || len(jobs) != 1 {
				t.Fatalf("got %v, %v, want one job", jobs, err)
			}
			listed, cursor = listed+string(jobs[0].ID), next
		}
		if listed != "abc" {
			t.Errorf("got %q, want abc", listed)
		}
	})

	t.Run("a redrive that is refused returns the job that stands", func(t *testing.T) {
		job := pipeline.Job{ID: "stands", Status: pipeline.JobPartial, Epoch: 1}
		row := pipeline.Task{Ref: pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(1)}, Status: pipeline.TaskPending}
		if _, _, err := s.Submit(ctx, job, row); err != nil {
			t.Fatal(err)
		}
		reopened := job
		reopened.Status, reopened.Epoch = pipeline.JobRunning, 2
		_, stands, err := s.Redrive(ctx, pipeline.RedriveWrite{Task: row, Job: job, Reopened: reopened})
		if !errors.Is(err, pipeline.ErrFenced) || stands != job {
			t.Errorf("got %+v, %v, want the job as it was, refused", stands, err)
		}
		if got, err := s.Job(ctx, job.ID); err != nil || got != job {
			t.Errorf("got %+v, %v, want the job as it was", got, err)
		}
	})

	t.Run("each job's feed begins at 1", func(t *testing.T) {
		for _, job := range []pipeline.JobID{"feed one", "feed two"} {
			if err := s.PutFindings(ctx, pipeline.FindingGroup{Job: job, Task: "work#00001"}); err != nil {
				t.Fatal(err)
			}
			groups, err := s.Findings(ctx, job, 0, 0)
			if err != nil || len(groups) != 1 || groups[0].Seq != 1 {
				t.Errorf("%s: got %v, %v, want one group with number 1", job, groups, err)
			}
		}
	})
}

func TestLimitEdges(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, t.TempDir(), Config{})
	take := func(model string, now pipeline.Instant) (pipeline.Instant, error) {
		return s.TakeSlot(ctx, pipeline.SlotWrite{Model: model, Cost: time.Second, Burst: 2 * time.Second, Horizon: 3 * time.Second, Now: now})
	}

	t.Run("nothing is taken behind a penalty beyond the horizon", func(t *testing.T) {
		if err := s.Penalise(ctx, "penalised", t0+3001); err != nil {
			t.Fatal(err)
		}
		if _, err := take("penalised", t0); !errors.Is(err, pipeline.ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		if start, err := take("penalised", t0+1); err != nil || start != t0+3001 {
			t.Errorf("got %v, %v, want the end of the penalty", start, err)
		}
	})

	t.Run("a line that lay idle gives one burst and no more", func(t *testing.T) {
		if _, err := take("idle", t0); err != nil {
			t.Fatal(err)
		}
		now := t0.Add(time.Hour)
		var starts []pipeline.Instant
		for range 4 {
			start, err := take("idle", now)
			if err != nil {
				t.Fatal(err)
			}
			starts = append(starts, start-now)
		}
		if got, want := fmt.Sprint(starts), fmt.Sprint([]pipeline.Instant{0, 0, 0, 1000}); got != want {
			t.Errorf("starts after %v ms, want %v", got, want)
		}
	})

	t.Run("a refund is the model's own", func(t *testing.T) {
		for range 4 {
			if _, err := take("mine", t0); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Refund(ctx, "other", time.Minute, 0, t0); err != nil {
			t.Fatal(err)
		}
		if start, err := take("mine", t0); err != nil || start != t0+2000 {
			t.Errorf("got a start after %v, %v, want 2s", start.Sub(t0), err)
		}
	})
}

func TestQueueEdges(t *testing.T) {
	ctx := context.Background()
	open := func(t *testing.T, maxReceives int) (*Queue, *pipelinetest.Clock) {
		clock := pipelinetest.NewClock()
		return openTest(t, t.TempDir(), Config{Now: clock.Now}).Queue("q", 30*time.Second, maxReceives), clock
	}
	put := func(t *testing.T, q *Queue, n int) {
		t.Helper()
		if _, err := q.Send(ctx, []pipeline.Message{message(n)}); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(t *testing.T, q *Queue, limit int) (got []pipeline.Delivery) {
		t.Helper()
		got, err := q.Receive(ctx, limit, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	letters := func(t *testing.T, q *Queue) (n int) {
		t.Helper()
		for cursor := ""; ; {
			page, next, err := q.DeadLetters(ctx, cursor)
			if err != nil {
				t.Fatal(err)
			}
			if n += len(page); next == "" {
				return n
			}
			cursor = next
		}
	}

	t.Run("the message that was visible first is delivered first", func(t *testing.T) {
		q, clock := open(t, 9)
		put(t, q, 1)
		receive(t, q, 1) // visible again after 30 s
		clock.Advance(time.Second)
		put(t, q, 2)
		put(t, q, 3)
		clock.Advance(time.Minute)
		order := ""
		for _, d := range receive(t, q, 10) {
			m, err := pipeline.DecodeMessage(d.Body)
			if err != nil {
				t.Fatal(err)
			}
			order += fmt.Sprint(m.Task.Number())
		}
		if order != "231" {
			t.Errorf("got %s, want 231", order)
		}
	})

	t.Run("a message on its last receive is not buried while somebody works on it", func(t *testing.T) {
		q, clock := open(t, 1)
		put(t, q, 1)
		receive(t, q, 1)
		put(t, q, 2)
		if receive(t, q, 1); letters(t, q) != 0 {
			t.Error("it was buried")
		}
		clock.Advance(time.Minute)
		if receive(t, q, 1); letters(t, q) != 2 {
			t.Errorf("got %d dead letters, want 2", letters(t, q))
		}
	})

	t.Run("a delivery that is visible already is not delayed", func(t *testing.T) {
		q, clock := open(t, 9)
		put(t, q, 1)
		d := receive(t, q, 1)[0]
		clock.Advance(time.Minute)
		if err := q.Delay(ctx, d, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, q, 1); len(got) != 1 {
			t.Errorf("got %d deliveries, want 1", len(got))
		}
	})

	t.Run("no delivery is delayed beyond 12 hours from its receipt", func(t *testing.T) {
		q, clock := open(t, 9)
		put(t, q, 1)
		d := receive(t, q, 1)[0]
		clock.Advance(10 * time.Second)
		if err := q.Delay(ctx, d, 20*time.Hour); err != nil {
			t.Fatal(err)
		}
		clock.Advance(12*time.Hour - 11*time.Second)
		if got := receive(t, q, 1); len(got) != 0 {
			t.Errorf("got %d deliveries a second before, want none", len(got))
		}
		clock.Advance(time.Second)
		if got := receive(t, q, 1); len(got) != 1 {
			t.Errorf("got %d deliveries, want 1", len(got))
		}
	})

	t.Run("dead letters are read page by page, each once", func(t *testing.T) {
		q, _ := open(t, 9)
		for range 5 {
			if err := q.Bury(ctx, pipeline.DeadLetter{Body: make([]byte, 250_000)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, next, err := q.DeadLetters(ctx, ""); err != nil || next == "" {
			t.Errorf("got cursor %q, %v, want more than one page", next, err)
		}
		if got := letters(t, q); got != 5 {
			t.Errorf("got %d letters, want 5", got)
		}
	})

	t.Run("an old receipt delays nothing", func(t *testing.T) {
		q, clock := open(t, 9)
		put(t, q, 1)
		old := receive(t, q, 1)[0]
		clock.Advance(time.Minute)
		receive(t, q, 1)
		if err := q.Delay(ctx, old, 0); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, q, 1); len(got) != 0 {
			t.Errorf("got %d deliveries, want none", len(got))
		}
	})

	t.Run("a queue buries and shows its own messages only", func(t *testing.T) {
		q, clock := open(t, 1)
		other := q.store.Queue("other", time.Minute, 1)
		put(t, q, 1)
		receive(t, q, 1)
		clock.Advance(time.Hour)
		put(t, other, 2)
		receive(t, other, 1)
		if got, theirs := letters(t, q), letters(t, other); got != 0 || theirs != 0 {
			t.Errorf("got %d and %d dead letters before the queue's next receive, want none", got, theirs)
		}
		receive(t, q, 1)
		if got, theirs := letters(t, q), letters(t, other); got != 1 || theirs != 0 {
			t.Errorf("got %d and %d dead letters, want 1 and 0", got, theirs)
		}
	})

	t.Run("a dead letter without a time was buried now", func(t *testing.T) {
		q, _ := open(t, 9)
		for _, at := range []pipeline.Instant{0, 7} {
			if err := q.Bury(ctx, pipeline.DeadLetter{BuriedAt: at}); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := q.DeadLetters(ctx, "")
		if err != nil || len(got) != 2 || got[0].BuriedAt != t0 || got[1].BuriedAt != 7 {
			t.Errorf("got %+v, %v, want the clock's time and 7", got, err)
		}
	})

	t.Run("a wait that is over looks once more", func(t *testing.T) {
		var looks pipeline.Instant
		q := openTest(t, t.TempDir(), Config{Now: func() pipeline.Instant { return looks }}).Queue("q", time.Minute, 9)
		put(t, q, 1)
		looks = -1 // not visible yet
		q.store.cfg.Now = func() pipeline.Instant { looks++; return looks - 1 }
		if got, err := q.Receive(ctx, 1, time.Millisecond); err != nil || len(got) != 1 {
			t.Errorf("got %v, %v, want the message that became visible meanwhile", got, err)
		}
	})

	t.Run("what is no receipt removes nothing", func(t *testing.T) {
		q, _ := open(t, 9)
		put(t, q, 1)
		d := receive(t, q, 1)[0]
		number, _, _ := strings.Cut(d.Receipt, ".")
		for _, receipt := range []string{"", ".", "x", number, number + ".", "99.x"} {
			if _, err := q.Delete(ctx, []pipeline.Delivery{{Receipt: receipt}}); err != nil {
				t.Errorf("%q: %v", receipt, err)
			}
		}
		if _, inFlight, err := q.Depth(ctx); err != nil || inFlight != 1 {
			t.Errorf("got %d in flight, %v, want 1", inFlight, err)
		}
	})
}
