package finalize_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/finalize"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestHandle(t *testing.T) {
	small := func(edits ...func(*pipeline.Definition)) pipeline.Definition {
		return pipelinetest.NewDefinition(2, 2, append([]func(*pipeline.Definition){func(d *pipeline.Definition) { d.Tolerance = 1 }}, edits...)...)
	}
	t.Run("a job of which every cell was answered is completed", func(t *testing.T) {
		b := newBench(t, small(), 3)
		b.answerAll(3, nil)
		if e := b.run(); e.Outcome != pipeline.Succeeded {
			t.Fatalf("got %s: %s", e.Outcome, e.Failure)
		}
		r := b.result()
		want := pipeline.Counts{Cells: 12, Answered: 12}
		if job := b.job(); job.Status != pipeline.JobCompleted || job.EndedAt == 0 || r.Counts != want {
			t.Errorf("got %s at %s with %+v, want completed with %+v", job.Status, job.EndedAt, r.Counts, want)
		}
		if r.Job != b.job() || r.Epoch != 1 || r.Generation != 1 {
			t.Errorf("the result is of %+v, epoch %d, generation %d; want the job as it ended", r.Job, r.Epoch, r.Generation)
		}
		if got := b.row(pipeline.FinalizeTask(1)); got.Accepted != 1 {
			t.Errorf("the finalize's stage is not accepted: it would run again")
		}
	})
	t.Run("attempts that count add up to the spend", func(t *testing.T) {
		b := newBench(t, small(), 2)
		b.answerAll(2, nil)
		zombie := pipeline.Record{Task: pipeline.WorkTask(0), Generation: 1, Ender: pipeline.ExpiredBy, Tries: 1000, Cost: 1000}
		b.must(b.store.PutItem(t.Context(), jobID, pipeline.RecordKey(zombie.Task, 1, zombie.Ender), pipeline.Encode(zombie)))
		b.run()
		got := b.result().Spend
		if got.Tries != 12 || got.Unnamed != 2 || got.Cost != 200 || got.Unsure != 2 || got.Usage.Input != 20 || got.Failures[pipeline.Ambiguous] != 2 {
			t.Errorf("got %+v, want 12 tries (2 unnamed, 2 unsure) that cost 200", got)
		}
		if n := len(b.result().Attempts); n != 2 {
			t.Errorf("got %d attempts, want the 2 that count", n)
		}
	})
	t.Run("a task that is still open defers it", func(t *testing.T) {
		b := newBench(t, small(), 2)
		b.answer(0, 2, pipeline.TaskDone, pipeline.Failure{}, nil)
		if e := b.run(); e.Outcome != pipeline.Deferral || !strings.Contains(e.Failure.Cause, "1 are still open") {
			t.Errorf("got %s: %s; want a deferral that says what it waits for", e.Outcome, e.Failure)
		}
		if got := b.job().Status; got != pipeline.JobRunning {
			t.Errorf("got %s, want running", got)
		}
	})
	t.Run("an absent row of the manifest defers it", func(t *testing.T) {
		b := newBench(t, small(), 2)
		b.answerAll(2, nil)
		b.store.DeleteTask(pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(1)})
		if e := b.run(); e.Outcome != pipeline.Deferral {
			t.Errorf("got %s: %s; want a deferral", e.Outcome, e.Failure)
		}
	})
	t.Run("what is missing makes the job partial, and every missing cell has its reason", func(t *testing.T) {
		b := newBench(t, small(), 3)
		b.answer(0, 2, pipeline.TaskDone, pipeline.Failure{}, func(body *pipeline.StageBody) {
			if body.Stage == 1 {
				body.Cells[0].State, body.Cells[0].Failure = pipeline.CellFailed, pipeline.Fail(pipeline.Refused, "content filter")
				body.Cells[1].State = pipeline.CellGated
			}
		})
		b.answer(1, 1, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Lost, "worker died 3 times"), nil)
		b.answer(2, 2, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.run()
		r := b.result()
		want := pipeline.Counts{Cells: 12, Answered: 8, Failed: 1, Gated: 1, NotAsked: 2}
		if r.Status != pipeline.JobPartial || r.Counts != want {
			t.Fatalf("got %s with %+v, want partial with %+v", r.Status, r.Counts, want)
		}
		var got []string
		for _, cell := range r.Missing {
			got = append(got, fmt.Sprintf("%d %s %s %s", cell.Chunk, cell.Call, cell.State, cell.Failure.Kind))
		}
		if want := "0 s1c1 failed refused; 1 s2c1 not_asked lost; 1 s2c2 not_asked lost"; strings.Join(got, "; ") != want {
			t.Errorf("got missing %q, want %q", strings.Join(got, "; "), want)
		}
		if !strings.Contains(r.Reason.Cause, "3 of 12 cells are missing, 2 of them: worker died 3 times") {
			t.Errorf("got reason %q", r.Reason.Cause)
		}
	})
	t.Run("more missing than the tolerance is failed", func(t *testing.T) {
		for tolerance, want := range map[float64]pipeline.JobStatus{0.25: pipeline.JobPartial, 0.24: pipeline.JobFailed, 0: pipeline.JobFailed} {
			b := newBench(t, small(func(d *pipeline.Definition) { d.Tolerance = tolerance }), 2)
			b.answer(0, 2, pipeline.TaskDone, pipeline.Failure{}, nil)
			b.answer(1, 1, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Exhausted, "gave up"), nil)
			b.run()
			if got := b.job().Status; got != want {
				t.Errorf("2 of 8 missing at tolerance %v: got %s, want %s", tolerance, got, want)
			}
		}
	})
	t.Run("what a zombie wrote beside an accepted stage is not read", func(t *testing.T) {
		b := newBench(t, small(), 1)
		b.answerAll(1, nil)
		zombie := pipeline.StageBody{Stage: 1, Cells: []pipeline.Cell{{Call: "s1c1", State: pipeline.CellFailed}}}
		b.must(b.store.PutItem(t.Context(), jobID, pipeline.BodyKey(pipeline.WorkTask(0), 1, 9), pipeline.Encode(zombie)))
		b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(0)}, map[string]any{
			"status": "done", "generation": 9, "stages": 2, "accepted": 2, "bodies": []int{1, 1},
		}))
		b.run()
		if got := b.job().Status; got != pipeline.JobCompleted {
			t.Errorf("got %s, want completed", got)
		}
	})
	t.Run("a cancelled job keeps its reason and says at which stage each task stopped", func(t *testing.T) {
		b := newBench(t, small(), 2)
		b.answer(0, 1, pipeline.TaskCancelled, pipeline.Fail(pipeline.Cancelled, "wrong draft"), nil)
		b.close(pipeline.WorkTask(1), pipeline.TaskCancelled, pipeline.Failure{})
		b.setJob(func(j *pipeline.Job) {
			j.Status, j.Reason = pipeline.JobCancelling, pipeline.Fail(pipeline.Cancelled, "wrong draft")
		})
		b.run()
		r := b.result()
		if b.job().Status != pipeline.JobCancelled || r.Reason.Cause != "wrong draft" {
			t.Errorf("got %s because of %q, want cancelled with the reason", b.job().Status, r.Reason.Cause)
		}
		if r.Tasks[1].Label != "cancelled-at-stage-2" || r.Tasks[2].Label != "cancelled-at-stage-1" {
			t.Errorf("got labels %q and %q", r.Tasks[1].Label, r.Tasks[2].Label)
		}
		for _, cell := range r.Missing {
			if cell.Failure.Cause != "wrong draft" {
				t.Errorf("%s of chunk %d: got reason %q", cell.Call, cell.Chunk, cell.Failure.Cause)
			}
		}
	})
	t.Run("a document without chunks is failed, not completed", func(t *testing.T) {
		b := newBench(t, small(), 0)
		_, err := b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, pipeline.Manifest{}.Encode())
		b.must(err)
		b.close(pipeline.SplitTask, pipeline.TaskDone, pipeline.Failure{})
		b.run()
		if got := b.job(); got.Status != pipeline.JobFailed || got.Reason.None() {
			t.Errorf("got %s because of %q, want failed with a reason", got.Status, got.Reason)
		}
	})
	t.Run("a split that was given up fails the job with its reason", func(t *testing.T) {
		b := newBench(t, small(), 0)
		b.close(pipeline.SplitTask, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Invalid, "no text"))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.run()
		if got := b.job(); got.Status != pipeline.JobFailed || got.Reason.Cause != "no text" {
			t.Errorf("got %s because of %q, want failed: no text", got.Status, got.Reason.Cause)
		}
	})
}

func TestRaces(t *testing.T) {
	definition := pipelinetest.NewDefinition(1, 1, func(d *pipeline.Definition) { d.Tolerance = 1 })
	t.Run("a cancel that comes first makes the job cancelled", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		a := b.claim()
		a.before = func(what string) {
			if what == "fence" && b.job().Status == pipeline.JobRunning {
				b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobCancelling })
			}
		}
		if e := b.finalizer().Handle(t.Context(), a); e.Outcome != pipeline.Succeeded {
			t.Fatalf("got %s: %s", e.Outcome, e.Failure)
		}
		if got := b.job().Status; got != pipeline.JobCancelled {
			t.Errorf("got %s, want cancelled", got)
		}
	})
	t.Run("a redrive that comes first is not overwritten, and its epoch has a finalize of its own", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.answer(0, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.answer(1, 0, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Lost, "died"), nil)
		a := b.claim()
		a.before = func(what string) {
			if what != "fence" || b.job().Epoch != 1 {
				return
			}
			reopened := b.job()
			reopened.Epoch, reopened.Status = 2, pipeline.JobRunning
			_, _, err := b.store.Redrive(t.Context(), pipeline.RedriveWrite{Task: b.row(pipeline.WorkTask(1)), Job: b.job(), Reopened: reopened, Now: b.clock.Now()})
			b.must(err)
		}
		if e := b.finalizer().Handle(t.Context(), a); e.Outcome != pipeline.Succeeded {
			t.Fatalf("got %s: %s", e.Outcome, e.Failure)
		}
		if got := b.job(); got.Status != pipeline.JobRunning || got.Epoch != 2 {
			t.Errorf("got %s in epoch %d, want running in epoch 2", got.Status, got.Epoch)
		}
		b.answer(1, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.run()
		if got := b.job(); got.Status != pipeline.JobCompleted || got.Epoch != 2 {
			t.Errorf("got %s in epoch %d, want completed in epoch 2", got.Status, got.Epoch)
		}
	})
	t.Run("a job that moves on and on is a deferral", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		a := b.claim()
		a.before = func(what string) {
			if what != "fence" {
				return
			}
			b.setJob(func(j *pipeline.Job) {
				if j.Status == pipeline.JobRunning {
					j.Status = pipeline.JobPaused
				} else {
					j.Status = pipeline.JobRunning
				}
			})
		}
		if e := b.finalizer().Handle(t.Context(), a); e.Outcome != pipeline.Deferral {
			t.Errorf("got %s: %s; want a deferral", e.Outcome, e.Failure)
		}
	})
	t.Run("an ended job is left as it is", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobFailed })
		want := b.job()
		if e := b.run(); e.Outcome != pipeline.Succeeded {
			t.Errorf("got %s: %s; want success", e.Outcome, e.Failure)
		}
		if got := b.job(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
	t.Run("a finalizer that lost its claim changes nothing", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		a := b.claim()
		row := b.row(a.claim.ID)
		b.clock.Advance(time.Minute)
		_, err := b.store.Expire(t.Context(), pipelinetest.ExpireOf(row, pipeline.Verdict{Status: pipeline.TaskPending}, b.clock.Now()))
		b.must(err)
		if e := b.finalizer().Handle(t.Context(), a); e.Outcome == pipeline.Succeeded {
			t.Errorf("got %s, want a failure", e.Outcome)
		}
		if got := b.job().Status; got != pipeline.JobRunning {
			t.Errorf("got %s, want running", got)
		}
	})
	t.Run("a crash before or after any write changes neither the result nor the feed", func(t *testing.T) {
		crash := errors.New("killed")
		for point := range 60 {
			b := newBench(t, definition, 2)
			b.answerAll(2, func(body *pipeline.StageBody) {
				body.Findings = []pipeline.Finding{finding(body.Chunk, "s1c1", "cap", 100*body.Chunk, 100*body.Chunk+10)}
			})
			n := 0
			around := func(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error {
				n++
				if n > point {
					return crash
				}
				return do(ctx)
			}
			b.finalizer(func(c *finalize.Config) {
				c.Store, c.Blobs = pipelinetest.Wrap(b.store, around), pipelinetest.WrapBlobs(b.store, around)
			}).Handle(t.Context(), b.claim())
			killed := n > point
			b.clock.Advance(time.Minute)
			if row := b.row(pipeline.FinalizeTask(1)); row.Accepted == 0 {
				_, err := b.store.Expire(t.Context(), pipelinetest.ExpireOf(row, pipeline.Verdict{Status: pipeline.TaskPending}, b.clock.Now()))
				b.must(err)
				b.run()
			}
			if got := b.job().Status; got != pipeline.JobCompleted {
				t.Fatalf("killed at call %d: got %s, want completed", point, got)
			}
			if got := b.feed(); len(got) != 2 || len(b.result().Findings) != 2 {
				t.Fatalf("killed at call %d: got feed %v and %d findings, want 2 of each", point, got, len(b.result().Findings))
			}
			if !killed {
				return
			}
		}
		t.Error("the finalize has more than 60 calls: not every one was tried")
	})
}

func TestPoison(t *testing.T) {
	t.Run("a document with the marker kills a finalizer that can be killed", func(t *testing.T) {
		b := newBench(t, pipelinetest.NewDefinition(1, 1), 1)
		b.answerAll(1, nil)
		b.must(b.store.PutBlob(t.Context(), pipeline.DocumentKey("hash"), []byte("text "+finalize.PoisonMarker)))
		killed := 0
		b.run(func(c *finalize.Config) { c.Kill = func() { killed++ } })
		if killed != 1 {
			t.Errorf("killed %d times, want once", killed)
		}
	})
}

func finding(chunk int, call, category string, start, end int) pipeline.Finding {
	f := pipeline.Finding{
		State: pipeline.Provisional, Category: category, Call: call, Severity: pipeline.High, Title: "A cap", Quote: "ten",
		Start: start, End: end, Match: pipeline.MatchExact, Confidence: 0.8, Chunk: chunk, Model: "scripted@1",
	}
	f.ID = pipeline.FindingID("hash", f)
	return f
}
