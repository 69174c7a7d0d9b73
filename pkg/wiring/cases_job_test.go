package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// A cancel that meets trouble of every kind stops the spending all the same.
func TestCaseC01CancelStopsTheSpending(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		around pipelinetest.Around // of the desk that cancels
		worker pipelinetest.Around
		react  func(int, pipeline.Request) error
		cancel func(w *world, id pipeline.JobID) error
	}{
		"twice": {after: 7 * time.Second, cancel: func(w *world, id pipeline.JobID) error {
			_, err := w.desk.Submitter.Cancel(w.ctx, id, "enough")
			w.must(err)
			_, err = w.desk.Submitter.Cancel(w.ctx, id, "enough")
			return err
		}},
		"while the splitter puts its rows": {after: 300 * time.Millisecond, worker: slow("PutTasks", 2*time.Second)},
		"while the splitter reads":         {after: 300 * time.Millisecond, worker: slow("Blob", 2*time.Second)},
		"with the provider down":           {after: 20 * time.Second, react: always(pipeline.Unavailable, 0)},
		"with everybody told to wait":      {after: 20 * time.Second, react: always(pipeline.Throttled, 20*time.Second)},
		"the job's row throttled":          {after: 7 * time.Second, around: pipelinetest.LoseWrites(4, "SetJob")},
		"its answers lost":                 {after: 7 * time.Second, around: pipelinetest.LoseAnswers(6, "SetJob", "Close", "PutItemOnce")},
		"every close of a row lost":        {after: 7 * time.Second, around: pipelinetest.LoseWrites(1000, "Close")},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				w.model.takes, w.model.react = 5*time.Second, c.react
				for n := range 6 {
					w.start(fmt.Sprint("worker-", n), c.worker, func(cfg *wiring.Config) { cfg.InFlight, cfg.Claims = 2, 2 })
				}
				job := w.submit(text(22))
				if c.around != nil {
					w.desk = wiring.New(&wiring.Backend{Store: pipelinetest.Wrap(w.back.Store, c.around), Blobs: w.back.Blobs, Queues: w.back.Queues},
						wiring.Config{Tenant: "tenant", Worker: "desk", Policy: w.policy, Clock: w.clock, Model: w.model, Jitter: half})
				}
				time.Sleep(c.after)
				var err error
				if c.cancel != nil {
					err = c.cancel(w, job.ID)
				} else {
					_, err = w.desk.Submitter.Cancel(w.ctx, job.ID, "enough")
				}
				if err != nil && !strings.Contains(err.Error(), "no call starts any more") {
					t.Fatal(err)
				}
				at := w.clock.Now()
				w.ends(job.ID, 2*time.Minute, pipeline.JobCancelled)
				time.Sleep(10 * time.Minute)
				if last := w.model.lastAsked(); last > at.Add(2*time.Second) {
					t.Errorf("a call started %v after the cancel", last.Sub(at))
				}
				w.sound(job.ID)
				cancelled(w, job.ID, c.after)
				w.quiet()
				if _, err := w.desk.Triage.Redrive(w.ctx, job.ID); err == nil {
					t.Error("a redrive brought it back")
				}
				for _, row := range w.rows(job.ID) {
					_ = w.back.Queues.Ring(w.ctx, row)
				}
				asked, _, _ := w.model.count()
				time.Sleep(10 * time.Minute)
				if now, _, _ := w.model.count(); now != asked || w.job(job.ID).Status != pipeline.JobCancelled {
					t.Errorf("redelivered messages brought it back: %d calls, %s", now-asked, w.job(job.ID).Status)
				}
			})
		})
	}
}

// slow lets every call of one kind take so long.
func slow(op string, by time.Duration) pipelinetest.Around {
	return func(ctx context.Context, o pipelinetest.Op, do func(context.Context) error) error {
		if o.Name == op {
			time.Sleep(by)
		}
		return do(ctx)
	}
}

// A job that everybody left: the same document, submitted again, ends.
func TestCaseC03StrandedJobSubmittedAgain(t *testing.T) {
	for name, away := range map[string]time.Duration{"an hour later": time.Hour, "a day later": 24 * time.Hour, "six days later": 6 * 24 * time.Hour} {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, held %v", name, held), func(t *testing.T) {
				in(t, func(w *world) {
					hold := func(s *submit.Submission) { s.Hold = held }
					w.model.takes = time.Second
					p := w.start("first", nil)
					job := w.submit(text(8), hold)
					time.Sleep(7 * time.Second)
					p.kill()
					time.Sleep(away)
					again := w.submit(text(8), hold)
					w.start("second", nil)
					if held {
						time.Sleep(time.Minute)
						_, err := w.desk.Submitter.Start(w.ctx, again.ID)
						w.must(err)
					}
					w.ends(again.ID, 10*time.Minute, pipeline.JobCompleted)
					w.complete(again.ID, 8)
					if _, _, stored := w.model.count(); stored > 0 {
						t.Errorf("%d stored answers were asked for again", stored)
					}
					if again.ID != job.ID {
						t.Logf("run %d went on as run %d", job.Run, again.Run)
					}
				})
			})
		}
	}
}

// There is nothing to ask about: the job ends at once, says so, and nobody is asked.
func TestCaseI04NothingToDo(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want pipeline.JobStatus
	}{
		"white space":               {" \n\t\r\n ", pipeline.JobFailed},
		"no-break spaces":           {"\u00a0\u00a0\n\u2003\u3000", pipeline.JobFailed},
		"a byte order mark alone":   {"\ufeff", pipeline.JobFailed},
		"zero-width characters":     {"\u200b\u200d\u2060\ufeff", pipeline.JobFailed},
		"soft hyphens":              {"\u00ad\u00ad", pipeline.JobFailed},
		"form feeds":                {"\f\f\f", pipeline.JobFailed},
		"marks of direction alone":  {"\u200e\u200f\u202a\u202c", pipeline.JobFailed},
		"one character":             {"x", pipeline.JobCompleted},
		"one full stop":             {".", pipeline.JobCompleted},
		"one letter of two marks":   {"e\u0301", pipeline.JobCompleted},
		"one character of Chinese":  {"\u7532", pipeline.JobCompleted},
		"headings and nothing else": {"1. TERM\n\n2. FEES\n\n3. LAW\n", pipeline.JobCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				w.start("worker", nil)
				job := w.submit(c.text)
				ended := w.ends(job.ID, 10*time.Second, c.want)
				asked, _, _ := w.model.count()
				if c.want == pipeline.JobFailed && (asked > 0 || ended.Reason.Kind != pipeline.Invalid || !strings.Contains(ended.Reason.Cause, "no text")) {
					t.Errorf("asked %d times, and ended since %s; want no call, and 'no text'", asked, ended.Reason)
				}
				if c.want == pipeline.JobCompleted {
					w.complete(job.ID, 1)
				}
				w.sound(job.ID)
			})
		})
	}
	t.Run("no byte at all is refused before there is a job", func(t *testing.T) {
		in(t, func(w *world) {
			_, _, err := w.desk.Submitter.Submit(w.ctx, submit.Submission{Name: "empty.txt", Definition: small(), Model: w.model.Info()})
			if err == nil {
				t.Error("it was accepted")
			}
		})
	})
}

// Three of eight chunks fail for good, each in its way: partial, by name and reason, until a redrive makes it whole.
func TestCaseR03PartialIsNeverDressedUp(t *testing.T) {
	in(t, func(w *world) {
		var mended atomic.Bool
		w.model.react = func(_ int, r pipeline.Request) error {
			fails := func(kind pipeline.Kind) error {
				return &pipeline.ModelError{Failure: pipeline.Fail(kind, "scripted %s", kind)}
			}
			switch {
			case mended.Load():
			case strings.Contains(r.Shared, "Clause number 2."):
				return fails(pipeline.Refused)
			case strings.Contains(r.Shared, "Clause number 5."):
				return fails(pipeline.Invalid)
			case strings.Contains(r.Shared, "Clause number 7."):
				return errors.New("connection reset")
			}
			return nil
		}
		w.start("worker", nil)
		job := w.submit(text(8))
		w.ends(job.ID, 12*time.Hour, pipeline.JobPartial)
		r := w.result(job.ID)
		kinds := map[int]map[pipeline.Kind]int{}
		for _, cell := range r.Missing {
			if kinds[cell.Chunk] == nil {
				kinds[cell.Chunk] = map[pipeline.Kind]int{}
			}
			kinds[cell.Chunk][cell.Failure.Kind]++
		}
		want := map[int]pipeline.Kind{1: pipeline.Refused, 4: pipeline.Invalid, 6: pipeline.Ambiguous}
		for chunk, kind := range want {
			if kinds[chunk][kind] == 0 {
				t.Errorf("chunk %d is missing since %v, want %s among the reasons", chunk, kinds[chunk], kind)
			}
		}
		if len(kinds) != len(want) || r.Counts.Answered+len(r.Missing) != 8*6 || r.Reason.None() {
			t.Errorf("got %d chunks missing, %+v, since %s; want 3 of 8, every cell told", len(kinds), r.Counts, r.Reason)
		}
		mended.Store(true)
		asked, _, _ := w.model.count()
		back, err := w.desk.Triage.Redrive(w.ctx, job.ID)
		w.must(err)
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		now := w.complete(job.ID, 8)
		if now.Epoch != r.Epoch+1 && now.Epoch != r.Epoch+int64(len(back.Tasks)) {
			t.Errorf("got epoch %d after %d", now.Epoch, r.Epoch)
		}
		if again, _, stored := w.model.count(); again-asked > back.Tries || stored > 0 || again-asked < len(r.Missing) {
			t.Errorf("asked %d times after the redrive, want at least the %d missing and at most the %d that were shown", again-asked, len(r.Missing), back.Tries)
		}
	})
}

// An operator's redrive dies at each of its writes, and is begun again: every chunk gets one more go, no chunk two.
func TestCaseX06RedriveKilledAndBegunAgain(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := 1; k < 40; k++ {
			done := false
			in(t, func(w *world) {
				w.model.react = always(pipeline.Refused, 0)
				p := w.start("worker", nil)
				job := w.submit(text(5))
				w.ends(job.ID, time.Hour, pipeline.JobPartial)
				p.kill()
				budget, err := w.back.Store.Budget(w.ctx, job.ID)
				w.must(err)
				shown, err := w.desk.Triage.Preview(w.ctx, job.ID)
				w.must(err)
				dies := func(n int, _ pipelinetest.Op) error {
					if n >= k {
						return pipelinetest.ErrKilled
					}
					return nil
				}
				c := &pipelinetest.Counter{Before: dies}
				if after {
					c = &pipelinetest.Counter{
						Before: func(n int, op pipelinetest.Op) error { return dies(n-1, op) },
						After:  func(n int, op pipelinetest.Op, _ error) error { return dies(n, op) },
					}
				}
				dying := wiring.New(&wiring.Backend{
					Store: pipelinetest.Wrap(w.back.Store, c.Around), Blobs: w.back.Blobs,
					Queues: pipeline.Queues{Control: w.back.Queues.Control, Work: pipelinetest.WrapQueue(w.back.Queues.Work, c.Around)},
				}, wiring.Config{Tenant: "tenant", Policy: w.policy, Clock: w.clock, Model: w.model, Jitter: half})
				_, first := dying.Triage.Redrive(w.ctx, job.ID)
				if done = first == nil && c.Count() < k; done {
					return
				}
				_, second := w.desk.Triage.Redrive(w.ctx, job.ID)
				for _, row := range w.rows(job.ID) {
					if row.ID.Kind() != pipeline.TaskWork {
						continue
					}
					if row.Status != pipeline.TaskPending || row.MaxTries != 2*w.policy.TryCap(6) || row.Generation != 2 {
						t.Errorf("killed at write %d, after %v (%v, %v): %s is %s with %d tries at generation %d, want one redrive",
							k, after, first, second, row.ID, row.Status, row.MaxTries, row.Generation)
					}
				}
				now, err := w.back.Store.Budget(w.ctx, job.ID)
				w.must(err)
				if now.Ceiling != budget.Ceiling+shown.Cost {
					t.Errorf("killed at write %d, after %v: the ceiling went from %s to %s, want %s more, once", k, after, budget.Ceiling, now.Ceiling, shown.Cost)
				}
				w.model.react = nil
				w.start("later", nil)
				w.ends(job.ID, time.Hour, pipeline.JobCompleted)
				w.sound(job.ID)
			})
			if done || t.Failed() {
				break
			}
		}
	}
}
