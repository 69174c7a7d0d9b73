package finalize_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// looks is a store whose readings of rows are what see makes of them.
type looks struct {
	pipeline.Store
	see func(rows []pipeline.Task) ([]pipeline.Task, error)
}

func (l looks) Tasks(ctx context.Context, job pipeline.JobID, cursor string) ([]pipeline.Task, string, error) {
	rows, next, err := l.Store.Tasks(ctx, job, cursor)
	if err != nil {
		return nil, "", err
	}
	rows, err = l.see(rows)
	return rows, next, err
}

const longAfter = 24*time.Hour + 3*time.Hour

func (b *bench) lose(id pipeline.TaskID) { b.store.DeleteTask(pipeline.Ref{Job: jobID, ID: id}) }

func (b *bench) has(id pipeline.TaskID) bool {
	_, err := b.store.Task(b.Context(), pipeline.Ref{Job: jobID, ID: id})
	return err == nil
}

// failed wants the job failed for a reason.
func (b *bench) failed(reason string) {
	b.Helper()
	if job := b.job(); job.Status != pipeline.JobFailed || !strings.Contains(job.Reason.Cause, reason) || job.EndedAt == 0 {
		b.Errorf("got %s because of %q, want failed because %q", job.Status, job.Reason, reason)
	}
}

func TestLostRow(t *testing.T) {
	definition := pipelinetest.NewDefinition(2, 1, func(d *pipeline.Definition) { d.Tolerance = 1 })
	for _, c := range []struct {
		name string
		edit func(b *bench)
		want pipeline.JobStatus
	}{
		{"a running job", func(*bench) {}, pipeline.JobPartial},
		{"a cancelled job", func(b *bench) { b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobCancelling }) }, pipeline.JobCancelled},
		{"a job past its deadline", func(b *bench) {
			b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobPlanned })
			b.clock.Advance(24*time.Hour + time.Minute)
		}, pipeline.JobPartial},
	} {
		t.Run(c.name+" ends, and the cells of a row that is gone say so", func(t *testing.T) {
			b := newBench(t, definition, 3)
			b.answerAll(3, nil)
			b.lose(pipeline.WorkTask(1))
			c.edit(b)
			b.must(b.opener().MaybeFinalize(t.Context(), jobID))
			row := b.row(pipeline.WorkTask(1))
			if row.Status != pipeline.TaskCancelled || row.Stages != 2 || row.Tenant == "" || row.DueAt != 0 {
				t.Fatalf("got %+v, want it cancelled, of two stages", row)
			}
			if row.Generation != 2 {
				t.Errorf("got generation %d, want one that no attempt had", row.Generation)
			}
			if !b.has(pipeline.FinalizeTask(1)) {
				t.Fatal("its finalize was not opened")
			}
			b.run()
			r := b.result()
			if r.Status != c.want || r.Counts.NotAsked != 2 || r.Counts.Answered != 4 {
				t.Errorf("got %s with %+v, want %s with 2 not asked", r.Status, r.Counts, c.want)
			}
			if cell := r.Missing[0]; cell.Chunk != 1 || cell.Failure.Kind != pipeline.StoreFault || cell.Failure.Cause != "its row is missing" {
				t.Errorf("got the missing cell %+v, want its reason", cell)
			}
		})
	}
	t.Run("a row that is there at the second look stays as it is", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.answer(0, 2, pipeline.TaskDone, pipeline.Failure{}, nil)
		want := b.row(pipeline.WorkTask(1))
		opener, readings := b.opener(), 0
		puts := 0
		count := func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "PutTasks" {
				puts++
			}
			return do(ctx)
		}
		opener.Store = looks{pipelinetest.Wrap(b.store, count), func(rows []pipeline.Task) ([]pipeline.Task, error) {
			if readings++; readings == 1 {
				return rows[:len(rows)-1], nil
			}
			return rows, nil
		}}
		b.must(opener.MaybeFinalize(t.Context(), jobID))
		if row := b.row(pipeline.WorkTask(1)); row.Status != want.Status || puts != 0 {
			t.Errorf("got %s after %d puts, want %s and none", row.Status, puts, want.Status)
		}
	})
	t.Run("a paused job waits until it is resumed", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.lose(pipeline.WorkTask(1))
		b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobPaused })
		b.clock.Advance(longAfter)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if b.has(pipeline.WorkTask(1)) || b.has(pipeline.FinalizeTask(1)) {
			t.Error("rows were put although the job is paused")
		}
	})
	t.Run("rows that are there are left to their workers", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.lose(pipeline.WorkTask(1))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if row := b.row(pipeline.WorkTask(0)); row.Status != pipeline.TaskPending || b.has(pipeline.FinalizeTask(1)) {
			t.Errorf("got %s, want pending and no finalize yet", row.Status)
		}
	})
}

func TestNothingToDecideFrom(t *testing.T) {
	definition := pipelinetest.NewDefinition(1, 1)
	for _, status := range []pipeline.JobStatus{pipeline.JobRunning, pipeline.JobCancelling} {
		for _, c := range []struct {
			name, reason string
			make         func(t *testing.T) *bench
		}{
			{"whose manifest is gone", "its manifest is missing", func(t *testing.T) *bench {
				b := newBench(t, definition, 0)
				b.close(pipeline.SplitTask, pipeline.TaskDone, pipeline.Failure{})
				return b
			}},
			{"whose manifest cannot be read", "its manifest cannot be read", func(t *testing.T) *bench {
				b := newBench(t, definition, 1)
				b.must(b.store.PutItem(t.Context(), jobID, pipeline.ManifestKey, []byte("x")))
				return b
			}},
			{"whose split's row is gone", "the row of its split is missing", func(t *testing.T) *bench {
				b := newBench(t, definition, 1)
				b.lose(pipeline.SplitTask)
				return b
			}},
		} {
			t.Run("a job that is "+string(status)+" and "+c.name+" is failed at once", func(t *testing.T) {
				b := c.make(t)
				b.setJob(func(j *pipeline.Job) { j.Status = status })
				b.must(b.opener().MaybeFinalize(t.Context(), jobID))
				b.failed(c.reason)
				b.must(b.opener().MaybeFinalize(t.Context(), jobID))
			})
		}
	}
	t.Run("a split that is there at the second look is no reason", func(t *testing.T) {
		b := newBench(t, definition, 1)
		opener, readings := b.opener(), 0
		opener.Store = looks{b.store, func(rows []pipeline.Task) ([]pipeline.Task, error) {
			if readings++; readings == 1 {
				return nil, nil
			}
			return rows, nil
		}}
		b.must(opener.MaybeFinalize(t.Context(), jobID))
		if got := b.job().Status; got != pipeline.JobRunning {
			t.Errorf("got %s, want running", got)
		}
	})
	t.Run("a finalize that was given up fails the job, whatever else is gone", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.answerAll(2, nil)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.close(pipeline.FinalizeTask(1), pipeline.TaskAbandoned, pipeline.Fail(pipeline.Busy, "not all tasks have ended"))
		b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(1)}, map[string]any{"status": "claimed", "stages": 1}))
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.failed("its finalize was given up: busy: not all tasks have ended")
	})
}

func TestLongAfterTheDeadline(t *testing.T) {
	definition := pipelinetest.NewDefinition(1, 1, func(d *pipeline.Definition) { d.Tolerance = 1 })
	broken := errors.New("the disk is broken")
	for _, c := range []struct {
		name string
		err  error
		late time.Duration
		want pipeline.JobStatus
	}{
		{"rows that cannot be read fail the job", broken, longAfter, pipeline.JobFailed},
		{"rows that cannot be read before are waited for", broken, 25 * time.Hour, pipeline.JobRunning},
		{"a busy store is waited for", pipeline.ErrBusy, longAfter, pipeline.JobRunning},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, definition, 1)
			b.clock.Advance(c.late)
			opener := b.opener()
			opener.Store = looks{b.store, func([]pipeline.Task) ([]pipeline.Task, error) { return nil, c.err }}
			err := opener.MaybeFinalize(t.Context(), jobID)
			if got := b.job(); got.Status != c.want || (c.want == pipeline.JobRunning) != errors.Is(err, c.err) {
				t.Errorf("got %s and %v, want %s", got.Status, err, c.want)
			}
		})
	}
	t.Run("a job with a row that nobody ends is finalized all the same, and failed when that is given up", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.answer(0, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.clock.Advance(longAfter)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if !b.has(pipeline.FinalizeTask(1)) || b.job().Status != pipeline.JobRunning {
			t.Fatalf("the job is %s, want a finalize and running", b.job().Status)
		}
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		if got := b.job().Status; got != pipeline.JobRunning {
			t.Fatalf("got %s at once: a finalize that was opened late had no time", got)
		}
		b.clock.Advance(3 * time.Hour)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.failed("its finalize was not through")
	})
	t.Run("a job whose rows were ended only then keeps what was answered", func(t *testing.T) {
		b := newBench(t, definition, 2)
		b.answer(0, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.clock.Advance(10 * 24 * time.Hour)
		b.must(b.opener().MaybeFinalize(t.Context(), jobID))
		b.close(pipeline.WorkTask(1), pipeline.TaskCancelled, pipeline.Fail(pipeline.Cancelled, "the job's deadline was over"))
		b.run()
		if r := b.result(); r.Status != pipeline.JobPartial || r.Counts.Answered != 1 {
			t.Errorf("got %s with %+v, want partial with 1 answered", r.Status, r.Counts)
		}
	})
}
