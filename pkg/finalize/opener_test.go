package finalize_test

import (
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestMaybeFinalize(t *testing.T) {
	definition := pipelinetest.NewDefinition(1, 1, func(d *pipeline.Definition) { d.Tolerance = 1 })
	exists := func(b *bench, id pipeline.TaskID) bool {
		_, err := b.store.Task(b.Context(), pipeline.Ref{Job: jobID, ID: id})
		return err == nil
	}
	t.Run("it is opened once, when the last task has ended, and rung", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.answer(0, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if exists(b, pipeline.FinalizeTask(1)) {
			t.Fatal("it was opened although a task is open")
		}
		b.answer(1, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
		for range 3 {
			b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		}
		if visible, _, _ := b.control.Depth(t.Context()); visible != 1 {
			t.Errorf("got %d bells, want 1", visible)
		}
		if row := b.row(pipeline.FinalizeTask(1)); row.DueAt == 0 || row.Stages != 1 {
			t.Errorf("got %+v, want a row of one stage that is due", row)
		}
	})
	t.Run("a split that has not ended is waited for, whatever its rows say", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.SplitTask}, map[string]any{"status": "claimed", "stages": 1}))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if exists(b, pipeline.FinalizeTask(1)) {
			t.Error("it was opened although the split may put more rows")
		}
	})
	t.Run("a split that never ran is closed by a manifest of no chunks, and a late split adds nothing", func(t *testing.T) {
		b := newBench(t, definition, 0)
		b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobCancelling })
		b.close(pipeline.SplitTask, pipeline.TaskCancelled, pipeline.Fail(pipeline.Cancelled, "by a person"))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		late := pipeline.Manifest{Chunks: []pipeline.Chunk{{}}}
		body, err := b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, late.Encode())
		b.must(err)
		if m, _ := pipeline.DecodeManifest(body); !m.Closed || len(m.Chunks) != 0 {
			t.Errorf("got manifest %+v, want the closed one", m)
		}
		b.run()
		if got := b.job().Status; got != pipeline.JobCancelled {
			t.Errorf("got %s, want cancelled", got)
		}
	})
	t.Run("a split that stopped half way has its missing rows put and its open ones ended", func(t *testing.T) {
		b := newBench(t, definition, 0)
		m := pipeline.Manifest{Document: "hash", Chunks: make([]pipeline.Chunk, 40)}
		for n := range m.Chunks {
			m.Chunks[n].Index = n
		}
		_, err := b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, m.Encode())
		b.must(err)
		_, err = b.store.PutTasks(t.Context(), []pipeline.Task{pipelinetest.NewRow(jobID, pipeline.WorkTask(3), func(r *pipeline.Task) { r.Stages = 1 })})
		b.must(err)
		b.close(pipeline.SplitTask, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Lost, "died 3 times"))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		for n := range m.Chunks {
			if row := b.row(pipeline.WorkTask(n)); row.Status != pipeline.TaskCancelled || row.Reason.None() {
				t.Fatalf("chunk %d is %s because of %q, want cancelled with a reason", n, row.Status, row.Reason)
			}
		}
		if _, err := b.store.Item(t.Context(), jobID, pipeline.CancellationKey(pipeline.WorkTask(3))); err != nil {
			t.Errorf("at which stage chunk 3 stopped: %v", err)
		}
		b.run()
		if r := b.result(); r.Status != pipeline.JobFailed || r.Counts.NotAsked != 40 {
			t.Errorf("got %s with %d not asked, want failed with 40", r.Status, r.Counts.NotAsked)
		}
	})
	t.Run("a row that a worker holds is waited for", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.SplitTask}, map[string]any{"status": "abandoned", "stages": 1}))
		_, err := b.store.Claim(t.Context(), pipelinetest.ClaimOf(b.row(pipeline.WorkTask(0)), "w", b.clock.Now()))
		b.must(err)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if exists(b, pipeline.FinalizeTask(1)) {
			t.Error("it was opened although a worker holds a row")
		}
	})
	t.Run("a finalize that was given up fails the job, once", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.close(pipeline.FinalizeTask(1), pipeline.TaskAbandoned, pipeline.Fail(pipeline.Lost, "worker died 3 times"))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		want := b.job()
		if want.Status != pipeline.JobFailed || want.Reason.None() {
			t.Errorf("got %s because of %q, want failed with a reason", want.Status, want.Reason)
		}
		b.clock.Advance(time.Hour)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if got := b.job(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
	t.Run("a finalize that nobody could claim fails the job long after its deadline", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.clock.Advance(24*time.Hour + time.Minute)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if got := b.job().Status; got != pipeline.JobRunning {
			t.Fatalf("got %s right after the deadline: the finalize had no time", got)
		}
		b.clock.Advance(3 * time.Hour)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if got := b.job().Status; got != pipeline.JobFailed {
			t.Errorf("got %s, want failed", got)
		}
	})
	t.Run("rows that a batch did not take are put again", func(t *testing.T) {
		b := newBench(t, definition, 1)
		b.answerAll(1, nil)
		refused := 2
		b.store.Unprocessed = func(op string, _ int) bool {
			refused--
			return op == "PutTasks" && refused >= 0
		}
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if !exists(b, pipeline.FinalizeTask(1)) {
			t.Error("the finalize was not put")
		}
	})
}
