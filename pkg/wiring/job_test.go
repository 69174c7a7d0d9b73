package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/split"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

const chunks = 4

// failing lets a share of the tries fail, of all kinds that a provider knows.
func failing(seed uint64, share float64, kinds ...pipeline.Kind) func(int, pipeline.Request) error {
	random := rand.New(rand.NewPCG(seed, 3))
	var mu sync.Mutex
	return func(int, pipeline.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if random.Float64() > share {
			return nil
		}
		return &pipeline.ModelError{Failure: pipeline.Fail(kinds[random.IntN(len(kinds))], "scripted")}
	}
}

func TestJob(t *testing.T) {
	run := func(name string, test func(w *world), edits ...func(w *world)) {
		t.Run(name, func(t *testing.T) { in(t, test, edits...) })
	}
	run("completes with every cell asked once", func(w *world) {
		w.start("worker", nil)
		job := w.submit(text(chunks))
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		r := w.complete(job.ID, chunks)
		asked, keys, _ := w.model.count()
		if asked != chunks*6 || keys != chunks*6 || r.Spend.Tries != chunks*6 {
			w.Errorf("got %d asks of %d keys, %d tries in the result, want %d of each", asked, keys, r.Spend.Tries, chunks*6)
		}
	})
	run("completes with a fifth of the tries failing, on three workers", func(w *world) {
		w.model.react = failing(1, 0.2, pipeline.Throttled, pipeline.Unavailable, pipeline.Ambiguous)
		for n := range 3 {
			w.start(fmt.Sprint("worker-", n), nil)
		}
		job := w.submit(text(12))
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		r := w.complete(job.ID, 12)
		asked, _, stored := w.model.count()
		if stored != 0 || r.Spend.Tries+r.Spend.Unnamed < asked || r.Spend.Failures[pipeline.Throttled] == 0 {
			w.Errorf("asked %d times, %d of them stored, and the result knows of %d tries", asked, stored, r.Spend.Tries)
		}
	})
	run("a second submit is the same job and asks nothing", func(w *world) {
		w.start("worker", nil)
		job := w.submit(text(chunks))
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		if again := w.submit(text(chunks)); again.ID != job.ID || again.Status != pipeline.JobCompleted {
			w.Errorf("got job %s, %s, want %s", again.ID, again.Status, job.ID)
		}
		time.Sleep(time.Minute)
		if asked, keys, _ := w.model.count(); asked != keys {
			w.Errorf("asked %d times for %d keys", asked, keys)
		}
	})
	run("the next draft pays only for what changed", func(w *world) {
		w.start("worker", nil)
		w.ends(w.submit(text(chunks)).ID, time.Minute, pipeline.JobCompleted)
		before, _, _ := w.model.count()
		next := strings.Replace(text(chunks), "The party of part 4.3", "The other party of part 4.3", 1)
		job := w.submit(next)
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		r := w.complete(job.ID, chunks)
		asked, _, stored := w.model.count()
		if asked-before != r.Counts.Answered-r.Counts.Reused || asked-before > 12 || asked == before || stored > 0 {
			w.Errorf("asked %d times for the next draft, %d of %d reused", asked-before, r.Counts.Reused, r.Counts.Answered)
		}
	})
	run("a cell that is refused: partial, it is named, and a redrive asks it and what depends on it alone", func(w *world) {
		var allow atomic.Bool
		w.model.react = func(_ int, r pipeline.Request) error {
			if !allow.Load() && strings.Contains(r.Prompt, "Question 3.2") && strings.Contains(r.Shared, "Clause number 2.") {
				return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Refused, "no")}
			}
			return nil
		}
		w.start("worker", nil)
		job := w.submit(text(chunks))
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		r := w.result(job.ID)
		if len(r.Missing) == 0 || r.Missing[0].Failure.Kind != pipeline.Refused || r.Missing[0].Call != "s3c2" {
			w.Fatalf("got %+v missing, want the refused", r.Missing)
		}
		asked, _, _ := w.model.count()
		allow.Store(true)
		_, err := w.desk.Triage.Redrive(w.ctx, job.ID)
		w.must(err)
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, chunks)
		if now, _, stored := w.model.count(); now-asked != len(r.Missing) || stored != 0 {
			w.Errorf("asked %d times after the redrive, want %d", now-asked, len(r.Missing))
		}
		if _, err := w.desk.Triage.Redrive(w.ctx, job.ID); err == nil {
			w.Error("a completed job was redriven")
		}
	})
	run("pause and resume at any moment: completes, and no call starts while it is paused", func(w *world) {
		w.model.takes = 700 * time.Millisecond
		w.start("worker", nil)
		w.start("other", nil)
		job := w.submit(text(8))
		for n := range 12 {
			time.Sleep(time.Duration(317*n) * time.Millisecond)
			if _, err := w.desk.Submitter.Pause(w.ctx, job.ID); err != nil {
				break
			}
			paused := w.clock.Now()
			time.Sleep(4 * time.Minute)
			if last := w.model.lastAsked(); last > paused.Add(2*time.Second) {
				w.Errorf("a call started %v after the pause", last.Sub(paused))
			}
			if w.job(job.ID).Status.Ended() {
				break // all that was left was to finalize it, which a pause does not keep
			}
			_, err := w.desk.Submitter.Resume(w.ctx, job.ID)
			w.must(err)
		}
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, 8)
		for _, row := range w.rows(job.ID) {
			if row.Deferrals > 0 || row.Losses > 0 {
				w.Errorf("%s has %d deferrals, %d losses: a pause was counted", row.ID, row.Deferrals, row.Losses)
			}
		}
	})
	run("a deadline that passes: partial or failed, with the reason, once", func(w *world) {
		w.model.takes = 90 * time.Second
		w.start("worker", nil)
		job := w.submit(text(20))
		time.Sleep(5 * time.Minute)
		seen := w.job(job.ID)
		next := seen
		next.Deadline = w.clock.Now().Add(time.Minute)
		_, err := w.back.Store.SetJob(w.ctx, seen, next)
		w.must(err)
		for !w.job(job.ID).Status.Ended() {
			time.Sleep(time.Second)
			if w.clock.Now() > next.Deadline.Add(time.Hour) {
				w.Fatal("it did not end")
			}
		}
		r := w.result(job.ID)
		if r.Status != pipeline.JobPartial && r.Status != pipeline.JobFailed || !strings.Contains(fmt.Sprint(r.Missing), "deadline") {
			w.Errorf("got %s, want partial or failed since the deadline", r.Status)
		}
		if w.model.lastAsked() > next.Deadline.Add(2*time.Second) {
			w.Errorf("a call started %v after the deadline", w.model.lastAsked().Sub(next.Deadline))
		}
		w.sound(job.ID)
	})
	run("an outage of an hour: nobody is abandoned, and it completes", func(w *world) {
		over := w.clock.Now().Add(time.Hour)
		w.model.react = func(int, pipeline.Request) error {
			if w.clock.Now() < over {
				return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Unavailable, "down")}
			}
			return nil
		}
		w.start("worker", nil)
		job := w.submit(text(chunks))
		w.ends(job.ID, 6*time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, chunks)
		if asked, keys, _ := w.model.count(); asked > keys+1000 {
			w.Errorf("asked %d times in an outage", asked)
		}
	})
	run("a drain hands over within seconds", func(w *world) {
		w.model.takes = 2 * time.Second
		first := w.start("first", nil)
		job := w.submit(text(8))
		time.Sleep(7 * time.Second)
		w.start("second", nil)
		first.drain()
		<-first.done
		w.ends(job.ID, 2*time.Minute, pipeline.JobCompleted)
		w.complete(job.ID, 8)
		if asked, keys, stored := w.model.count(); asked != keys || stored > 0 {
			w.Errorf("asked %d times for %d keys", asked, keys)
		}
	})
	run("planned, then started", func(w *world) {
		w.start("worker", nil)
		job := w.submit(text(chunks), func(s *submit.Submission) { s.Hold = true })
		time.Sleep(time.Minute)
		if asked, _, _ := w.model.count(); asked != 0 {
			w.Errorf("asked %d times before it was started", asked)
		}
		_, err := w.desk.Submitter.Start(w.ctx, job.ID)
		w.must(err)
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		w.complete(job.ID, chunks)
	})
	run("a ceiling: stops spending before it, and says so", func(w *world) {
		w.start("worker", nil)
		var most pipeline.Money = 40_000_000
		job := w.submit(text(8), func(s *submit.Submission) { s.MaxCost = most })
		for !w.job(job.ID).Status.Ended() {
			time.Sleep(time.Second)
			if w.clock.Mono() > 40*time.Hour {
				w.Fatal("it did not end")
			}
		}
		r := w.result(job.ID)
		if r.Spend.Cost > most || r.Status == pipeline.JobCompleted || r.Counts.Answered == 0 || !strings.Contains(fmt.Sprint(r.Missing), "ceiling") {
			w.Errorf("got %s with %d answered for %s, want some for at most %s", r.Status, r.Counts.Answered, r.Spend.Cost, most)
		}
		w.sound(job.ID)
	})
}

// TestCancel cancels at many moments of a run.
func TestCancel(t *testing.T) {
	for moment := time.Duration(0); moment < 6*time.Second; moment += 137 * time.Millisecond {
		in(t, func(w *world) {
			w.model.takes = 400 * time.Millisecond
			w.start("worker", nil)
			w.start("other", nil)
			job := w.submit(text(6))
			time.Sleep(moment)
			_, err := w.desk.Submitter.Cancel(w.ctx, job.ID, "enough")
			if errors.Is(err, submit.ErrStands) {
				return // it was over
			}
			w.must(err)
			at := w.clock.Now()
			w.ends(job.ID, time.Minute, pipeline.JobCancelled)
			time.Sleep(10 * time.Minute)
			if w.model.lastAsked() > at.Add(2*time.Second) {
				t.Errorf("cancelled after %v: a call started %v later", moment, w.model.lastAsked().Sub(at))
			}
			w.sound(job.ID)
			cancelled(w, job.ID, moment)
		})
		if t.Failed() {
			return
		}
	}
}

// cancelled checks that each cancelled task says at which stage it was, and that the result says what was saved.
func cancelled(w *world, id pipeline.JobID, moment time.Duration) {
	w.Helper()
	saved := 0
	for _, row := range w.rows(id) {
		if row.ID.Kind() != pipeline.TaskWork {
			continue
		}
		saved += 2 * row.Accepted
		if row.Status != pipeline.TaskCancelled {
			continue
		}
		item, err := w.back.Store.Item(w.ctx, id, pipeline.CancellationKey(row.ID))
		if err != nil {
			w.Errorf("cancelled after %v: %s: %v", moment, row.ID, err)
			continue
		}
		c, err := pipeline.Decode[pipeline.Cancellation](item, "cancellation")
		if want := fmt.Sprintf("cancelled-at-stage-%d", min(row.Accepted+1, 3)); err != nil || c.Label != want {
			w.Errorf("cancelled after %v: %s says %q, want %q", moment, row.ID, c.Label, want)
		}
	}
	if r := w.result(id); r.Counts.Answered < saved {
		w.Errorf("cancelled after %v: %d cells answered in the result, %d were saved", moment, r.Counts.Answered, saved)
	}
}

// TestPoison sends documents that kill whoever works on them.
func TestPoison(t *testing.T) {
	for name, c := range map[string]struct {
		marker string
		task   pipeline.TaskID
		want   pipeline.JobStatus
	}{
		"in split":    {split.PoisonMarker, pipeline.SplitTask, pipeline.JobFailed},
		"in finalize": {"HOLDFAST-POISON-FINALIZE", pipeline.FinalizeTask(1), pipeline.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				job := w.submit(text(2) + c.marker)
				neighbour := w.submit(text(chunks))
				p := w.start("worker-0", nil)
				for n := 1; n < 40 && !w.job(job.ID).Status.Ended(); n++ {
					time.Sleep(2 * time.Minute)
					if p.frozen() {
						p.kill()
						p = w.start(fmt.Sprint("worker-", n), nil)
					}
				}
				if got := w.job(job.ID); got.Status != c.want || got.Reason.None() {
					t.Errorf("the job is %s (%s), want %s with a reason", got.Status, got.Reason, c.want)
				}
				row, err := w.back.Store.Task(w.ctx, pipeline.Ref{Job: job.ID, ID: c.task})
				w.must(err)
				if row.Generation != int64(w.policy.MaxAttempts) || row.Status != pipeline.TaskAbandoned || row.Reason.Kind != pipeline.Lost {
					t.Errorf("got %s after %d claims (%s), want abandoned after %d", row.Status, row.Generation, row.Reason, w.policy.MaxAttempts)
				}
				w.ends(neighbour.ID, time.Hour, pipeline.JobCompleted)
				w.sound(job.ID)
				time.Sleep(20 * time.Minute)
				for _, q := range []pipeline.Queue{w.back.Queues.Control, w.back.Queues.Work} {
					if visible, inFlight, _ := q.Depth(w.ctx); visible+inFlight > 0 {
						t.Errorf("a queue still holds %d visible and %d in flight", visible, inFlight)
					}
				}
			})
		})
	}
}

func (p *process) frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shut != nil
}

// TestChaos runs three workers whose ports lose calls and answers, which freeze and die, under a model that fails.
func TestChaos(t *testing.T) {
	for seed := range uint64(seeds) {
		in(t, func(w *world) {
			random := rand.New(rand.NewPCG(seed, 11))
			var mu sync.Mutex
			dice := func() float64 {
				mu.Lock()
				defer mu.Unlock()
				return random.Float64()
			}
			w.model.react = failing(seed, 0.15, pipeline.Throttled, pipeline.Unavailable, pipeline.Ambiguous)
			faults := func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
				switch d := dice(); {
				case d < 0.01:
					return pipelinetest.ErrLost
				case d < 0.02:
					_ = do(ctx)
					return pipelinetest.ErrLost
				case d < 0.03:
					_ = w.clock.Sleep(ctx, time.Duration(dice()*float64(3*time.Second)))
				}
				return do(ctx)
			}
			start := func(n int) *process {
				return w.start(fmt.Sprint("worker-", n), faults, func(c *wiring.Config) { c.InFlight = 1 + n%4 })
			}
			procs := []*process{start(0), start(1), start(2)}
			job := w.submit(text(10))
			for n := 3; n < 60 && !w.job(job.ID).Status.Ended(); n++ {
				time.Sleep(time.Duration(dice() * float64(20*time.Second)))
				switch i := n % len(procs); {
				case n > 20: // it shall end
				case dice() < 0.3:
					procs[i].freeze()
				case dice() < 0.5:
					procs[i].thaw()
				default:
					procs[i].kill()
					procs[i] = start(n)
				}
			}
			for _, p := range procs {
				p.thaw()
			}
			w.ends(job.ID, 23*time.Hour, pipeline.JobCompleted)
			w.complete(job.ID, 10)
			if _, _, stored := w.model.count(); stored > 12 {
				t.Errorf("%d stored answers were asked for again", stored)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
