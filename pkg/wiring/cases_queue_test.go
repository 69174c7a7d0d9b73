package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// over rebuilds the backend with stores and queues that behave as the edits say.
func (w *world) over(store func(*memory.Store), queue func(*memory.QueueConfig)) {
	back := memory.New()
	store(back)
	open := func() pipeline.Queue {
		cfg := memory.QueueConfig{Visibility: w.policy.Visibility(), MaxReceives: w.policy.MaxReceives, Now: w.clock.Now}
		queue(&cfg)
		return memory.NewQueue(cfg)
	}
	w.back.Store, w.back.Blobs = back, back
	w.back.Queues = pipeline.Queues{Control: open(), Work: open()}
	w.desk = wiring.New(w.back, wiring.Config{Tenant: "tenant", Worker: "desk", Policy: w.policy, Clock: w.clock, Model: w.model, Jitter: half})
}

// quiet checks that no queue holds a message an hour later, by counting and not by what a delete answered.
func (w *world) quiet() {
	w.Helper()
	time.Sleep(time.Hour)
	for _, q := range []pipeline.Queue{w.back.Queues.Control, w.back.Queues.Work} {
		if visible, inFlight, err := q.Depth(w.ctx); visible+inFlight > 0 || err != nil {
			w.Errorf("a queue holds %d visible and %d in flight (%v), want none", visible, inFlight, err)
		}
	}
}

// asks checks how often the model was asked beyond once per question, and that no stored answer was asked for.
func (w *world) asks(extra int) {
	w.Helper()
	if asked, keys, stored := w.model.count(); asked > keys+extra || stored > 0 {
		w.Errorf("asked %d times for %d keys, %d of them stored; want at most %d more", asked, keys, stored, extra)
	}
}

func untouched(*memory.Store) {}

// Work that takes longer than its message is invisible is delivered again and again while it is done.
func TestCaseS01VisibilityShorterThanTheWork(t *testing.T) {
	in(t, func(w *world) {
		w.over(untouched, func(cfg *memory.QueueConfig) { cfg.Visibility = 2 * time.Second })
		w.model.takes = time.Second
		w.start("one", nil)
		w.start("two", nil)
		job := w.submit(text(10))
		w.ends(job.ID, 10*time.Minute, pipeline.JobCompleted)
		w.complete(job.ID, 10)
		w.asks(0)
		for _, row := range w.rows(job.ID) {
			if row.Generation > 1 || row.Losses > 0 || row.Deferrals > 0 {
				t.Errorf("%s was claimed %d times, lost %d, deferred %d: an early redelivery was taken for more", row.ID, row.Generation, row.Losses, row.Deferrals)
			}
		}
		w.quiet()
	})
}

// Every receive of every message is used up by pollers that never work: the queue buries all of them.
func TestCaseS04ReceivesSpentWithoutAnAttempt(t *testing.T) {
	in(t, func(w *world) {
		drop := func(q pipeline.Queue) {
			for range w.policy.MaxReceives + 1 {
				for {
					got, err := q.Receive(w.ctx, pipeline.MaxBatch, 0)
					w.must(err)
					if len(got) == 0 {
						break
					}
				}
				time.Sleep(w.policy.Visibility() + time.Second)
			}
		}
		job := w.submit(text(chunks), func(s *submit.Submission) { s.Hold = true })
		drop(w.back.Queues.Control)
		splitter := w.start("splitter", nil)
		time.Sleep(20 * time.Minute)
		splitter.kill()
		_, err := w.desk.Submitter.Start(w.ctx, job.ID)
		w.must(err)
		drop(w.back.Queues.Work)
		letters, _, err := w.back.Queues.Work.DeadLetters(w.ctx, "")
		if err != nil || len(letters) != chunks {
			t.Fatalf("got %d dead letters of the queue's own (%v), want %d", len(letters), err, chunks)
		}
		stale, err := w.desk.Triage.DeadLetters(w.ctx)
		w.must(err)
		for _, l := range stale {
			if l.Task.Kind() != pipeline.TaskWork {
				continue
			}
			if !l.Stale || l.Row == nil || l.Row.Attempts != 0 || l.Row.Status.Ended() {
				t.Errorf("got %s about %s, want stale: nobody has tried it", l.Meaning, l.Task)
			}
		}
		w.start("worker", nil)
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, chunks)
		w.asks(0)
		w.quiet()
	})
}

// bounded is a queue that notes the longest delay asked of it, and can refuse everything about a delivery.
type bounded struct {
	pipeline.Queue
	mu      sync.Mutex
	longest time.Duration
	expired bool // every handle is
	refused int
}

func (b *bounded) refuse(after time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.longest = max(b.longest, after)
	if !b.expired {
		return nil
	}
	b.refused++
	return errors.New("the receipt handle has expired")
}

func (b *bounded) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	if err := b.refuse(after); err != nil {
		return err
	}
	return b.Queue.Delay(ctx, d, after)
}

func (b *bounded) Delete(ctx context.Context, d []pipeline.Delivery) ([]pipeline.Delivery, error) {
	if err := b.refuse(0); err != nil {
		return d, err
	}
	return b.Queue.Delete(ctx, d)
}

// A quota that comes back in 20 hours: the wait is the row's, no delivery's.
func TestCaseS06WaitsLongerThanAQueueAllows(t *testing.T) {
	for name, expired := range map[string]bool{"the handles hold": false, "every handle has expired": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				queue := &bounded{Queue: w.back.Queues.Work, expired: expired}
				w.back.Queues.Work = queue
				back := w.clock.Now().Add(20 * time.Hour)
				w.model.react = func(int, pipeline.Request) error {
					if left := back.Sub(w.clock.Now()); left > 0 {
						return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Quota, "used up"), RetryAfter: left}
					}
					return nil
				}
				w.start("worker", nil, func(c *wiring.Config) { c.Poll = 20 * time.Second })
				job := w.submit(text(chunks))
				w.ends(job.ID, 24*time.Hour, pipeline.JobCompleted)
				w.complete(job.ID, chunks)
				for _, row := range w.rows(job.ID) {
					if row.Attempts > 1 || row.Losses > 0 || row.Reason.Kind == pipeline.Exhausted {
						t.Errorf("%s stands at attempt %d with %d losses (%s): waiting used attempts up", row.ID, row.Attempts, row.Losses, row.Reason)
					}
				}
				if queue.longest > 15*time.Minute {
					t.Errorf("a delivery was delayed by %v, want at most 15 minutes", queue.longest)
				}
				if expired && queue.refused == 0 {
					t.Error("no handle was used")
				}
			})
		})
	}
}

// Every batch is taken in part only, and the connection breaks in between.
func TestCaseS07BatchesThatSucceedInPart(t *testing.T) {
	for name, faults := range map[string]struct {
		rows, sends func(index, call int) bool
		around      pipelinetest.Around
	}{
		"two of ten, every time":     {func(i, _ int) bool { return i%5 == 1 }, func(i, _ int) bool { return i%5 == 2 }, nil},
		"all but the first":          {func(i, _ int) bool { return i > 0 }, func(i, _ int) bool { return i > 0 }, nil},
		"no message is ever taken":   {func(i, call int) bool { return i == 3 && call < 20 }, func(_, call int) bool { return call < 12 }, nil},
		"a reset after the first":    {func(i, call int) bool { return i > 20 && call < 40 }, func(int, int) bool { return false }, pipelinetest.LoseAnswers(3, "PutTasks", "Send")},
		"a reset before the first":   {func(int, int) bool { return false }, func(int, int) bool { return false }, pipelinetest.LoseWrites(3, "PutTasks", "Send")},
		"deletes are never complete": {func(int, int) bool { return false }, func(int, int) bool { return false }, pipelinetest.LoseWrites(5, "Delete")},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				var mu sync.Mutex
				calls := map[string]int{}
				fails := func(pick func(index, call int) bool, op string, index int) bool {
					mu.Lock()
					defer mu.Unlock()
					calls[op]++
					return pick(index, calls[op])
				}
				w.over(
					func(s *memory.Store) {
						s.Unprocessed = func(op string, i int) bool { return op == "PutTasks" && fails(faults.rows, op, i) }
					},
					func(cfg *memory.QueueConfig) {
						cfg.Failed = func(op string, i int) bool { return op == "Send" && fails(faults.sends, op, i) }
					},
				)
				w.start("worker", faults.around)
				job := w.submit(text(25))
				w.ends(job.ID, time.Hour, pipeline.JobCompleted)
				w.complete(job.ID, 25)
				rows := map[pipeline.TaskKind]int{}
				for _, row := range w.rows(job.ID) {
					rows[row.ID.Kind()]++
				}
				if rows[pipeline.TaskWork] != 25 || rows[pipeline.TaskSplit] != 1 || rows[pipeline.TaskFinalize] != 1 {
					t.Errorf("got the rows %v, want 25 of work", rows)
				}
				w.asks(0)
				// The job's message comes again: nothing is made twice.
				split, err := w.back.Store.Task(w.ctx, pipeline.Ref{Job: job.ID, ID: pipeline.SplitTask})
				w.must(err)
				_ = w.back.Queues.Ring(w.ctx, split)
				time.Sleep(time.Hour)
				if again := len(w.rows(job.ID)); again != 27 {
					t.Errorf("got %d rows after the split was rung again, want 27", again)
				}
				w.quiet()
			})
		})
	}
}

// A dead letter that the queue has forgotten takes nothing along: row, reasons and redrive are the table's.
func TestCaseS10DeadLetterGoneBeforeAnybodyLooked(t *testing.T) {
	in(t, func(w *world) {
		broken := true
		w.model.react = func(_ int, r pipeline.Request) error {
			if broken && strings.Contains(r.Shared, "Clause number 2.") {
				return errors.New("connection reset")
			}
			return nil
		}
		w.start("worker", nil)
		job := w.submit(text(chunks))
		w.ends(job.ID, 5*time.Hour, pipeline.JobPartial)
		time.Sleep(time.Hour)
		w.back.Queues.Work = &forgetful{w.back.Queues.Work}
		w.desk = wiring.New(w.back, wiring.Config{Tenant: "tenant", Worker: "desk", Policy: w.policy, Clock: w.clock, Model: w.model, Jitter: half})
		if letters, err := w.desk.Triage.DeadLetters(w.ctx); err != nil || len(letters) != 0 {
			t.Fatalf("got %d dead letters (%v), want them gone", len(letters), err)
		}
		for _, row := range w.rows(job.ID) {
			if row.Status != pipeline.TaskAbandoned {
				continue
			}
			h, err := pipeline.ReadHistory(w.ctx, w.back.Store, row.Ref)
			if err != nil || len(row.Counting(h.Records)) != w.policy.MaxAttempts {
				t.Errorf("%s: got %d records (%v), want %d, each with its reason", row.ID, len(h.Records), err, w.policy.MaxAttempts)
			}
		}
		broken = false
		back, err := w.desk.Triage.Redrive(w.ctx, job.ID)
		if err != nil || len(back.Tasks) != 1 {
			t.Fatalf("got %+v (%v), want one task redriven from the table alone", back, err)
		}
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, chunks)
	})
}

// forgetful is a queue whose dead letters are past their retention.
type forgetful struct{ pipeline.Queue }

func (f *forgetful) DeadLetters(context.Context, string) ([]pipeline.DeadLetter, string, error) {
	return nil, "", nil
}

// Six deploys in a row, each with calls longer than the grace: nothing is abandoned, nothing circles without a number.
func TestCaseE02DeploysWithoutEnoughGrace(t *testing.T) {
	in(t, func(w *world) {
		w.model.takes = 90 * time.Second
		start := func(n int) *process {
			return w.start(fmt.Sprint("worker-", n), nil, func(c *wiring.Config) { c.Grace = 30 * time.Second })
		}
		p := start(0)
		job := w.submit(text(12))
		for n := 1; n <= 6; n++ {
			time.Sleep(75 * time.Second)
			p.drain()
			<-p.done
			p = start(n)
		}
		w.ends(job.ID, 5*time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, 12)
		deferrals := 0
		for _, row := range w.rows(job.ID) {
			deferrals = max(deferrals, row.Deferrals)
			if row.Attempts > 1 || row.Losses > 0 {
				t.Errorf("%s: attempt %d, %d losses: a deploy was counted", row.ID, row.Attempts, row.Losses)
			}
		}
		if deferrals == 0 || deferrals > 6 {
			t.Errorf("got %d deferrals of one task, want each deploy counted against their own number", deferrals)
		}
		w.quiet()
	})
}
