package pipelinetest

import (
	"fmt"
	"testing"

	"holdfast/pkg/pipeline"
)

var redrivePromises = []promise{
	{"a redrive reopens task and job, both or neither", redriveReopens},
	{"a redrive of a done task keeps the stages before", redriveKeepsStages},
	{"a redrive is refused when the task or the job moved", redriveRefused},
	{"a redrive is refused for what has not ended", redriveOnlyEnded},
	{"cancel and redrive meet on the job's epoch and status, and the first wins", cancelMeetsRedrive},
	{"a redrive whose answer was lost does not land twice", lostRedrive},
}

// partial is a job that ended with a task of it abandoned, and its redrive.
func partial(b *bench) pipeline.RedriveWrite {
	b.Helper()
	job := submit(b, func(j *pipeline.Job) { j.Status, j.EndedAt = pipeline.JobPartial, T0 })
	row := b.row(status(pipeline.TaskAbandoned), func(row *pipeline.Task) { row.Buried = true })
	reopened := job
	reopened.Status, reopened.Epoch, reopened.EndedAt, reopened.Deadline = pipeline.JobRunning, 2, 0, T0+90_000_000
	return pipeline.RedriveWrite{Task: row, Job: job, Accepted: row.Accepted, Reopened: reopened, MaxTries: 240, Now: soon}
}

func (b *bench) untouched(w pipeline.RedriveWrite) {
	b.Helper()
	b.stands(w.Task)
	job, err := b.Store.Job(b.ctx, w.Job.ID)
	if err != nil || job != w.Job {
		b.Errorf("got job %s, error %v; want it unchanged", pipeline.Encode(job), err)
	}
}

func redriveReopens(t *testing.T, h Harness) {
	b := newBench(t, h)
	w := partial(b)
	row, job, err := h.Store.Redrive(b.ctx, w)
	want := w.Task
	want.Status, want.Generation = pipeline.TaskPending, 5
	want.Attempts, want.Deferrals, want.Losses, want.Rings = 0, 0, 0, 0
	want.MaxTries, want.ReadyAt, want.DueAt, want.Buried = 240, soon, soon, false
	b.answers(row, err, want)
	if job != w.Reopened {
		t.Errorf("got job %s, want it reopened", pipeline.Encode(job))
	}
	stored, err := h.Store.Job(b.ctx, b.job)
	if err != nil || stored != w.Reopened {
		t.Errorf("got job %s, error %v; want it reopened", pipeline.Encode(stored), err)
	}
	b.listed(row, soon, true)
	b.claim(row, "B", soon)
}

func redriveKeepsStages(t *testing.T, h Harness) {
	b := newBench(t, h)
	w := partial(b)
	done := NewRow(b.job, pipeline.WorkTask(2), status(pipeline.TaskDone), func(row *pipeline.Task) {
		row.Accepted, row.Bodies = 3, []int64{2, 3, 4}
	})
	b.put(done)
	w.Task, w.Accepted = done, 1
	row, _, err := h.Store.Redrive(b.ctx, w)
	b.must(err)
	if row.Accepted != 1 || row.Body(1) != 2 || row.Body(2) != 0 || len(row.Bodies) > 1 {
		t.Errorf("got accepted %d, bodies %v; want the first stage of generation 2 alone", row.Accepted, row.Bodies)
	}
	b.stands(row)
}

func redriveRefused(t *testing.T, h Harness) {
	b := newBench(t, h)
	for name, edit := range map[string]func(*pipeline.RedriveWrite){
		"the task is of a newer generation":        func(w *pipeline.RedriveWrite) { w.Task.Generation-- },
		"the task is of an older generation":       func(w *pipeline.RedriveWrite) { w.Task.Generation++ },
		"the task has another status":              func(w *pipeline.RedriveWrite) { w.Task.Status = pipeline.TaskDone },
		"the job is in a newer epoch":              func(w *pipeline.RedriveWrite) { w.Job.Epoch-- },
		"the job is in an older epoch":             func(w *pipeline.RedriveWrite) { w.Job.Epoch++ },
		"the job has another status":               func(w *pipeline.RedriveWrite) { w.Job.Status = pipeline.JobFailed },
		"the job is being cancelled, and was seen": func(w *pipeline.RedriveWrite) { w.Job.Status = pipeline.JobCancelling },
	} {
		b.run(name, func(b *bench) {
			stands := partial(b)
			w := stands
			edit(&w)
			_, _, err := h.Store.Redrive(b.ctx, w)
			b.refused(err, stands.Task)
			b.untouched(stands)
		})
	}
	b.run("there is no such task", func(b *bench) {
		w := partial(b)
		h.Delete(b.T, w.Task.Ref)
		_, _, err := h.Store.Redrive(b.ctx, w)
		b.missing(err, w.Task.Ref)
		job, err := h.Store.Job(b.ctx, b.job)
		if err != nil || job != w.Job {
			b.Errorf("got job %s, error %v; want it unchanged", pipeline.Encode(job), err)
		}
	})
	b.run("there is no such job", func(b *bench) {
		row := b.row(status(pipeline.TaskAbandoned))
		job := NewJob(b.job)
		_, _, err := h.Store.Redrive(b.ctx, pipeline.RedriveWrite{Task: row, Job: job, Reopened: job, Now: soon})
		b.refused(err, row)
		_, err = h.Store.Job(b.ctx, b.job)
		b.fails(err, pipeline.ErrNotFound)
	})
}

func redriveOnlyEnded(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.run("but what the ceiling or the deadline stopped has", func(b *bench) {
		w := partial(b)
		w.Task = NewRow(b.job, pipeline.WorkTask(2), status(pipeline.TaskCancelled))
		b.put(w.Task)
		row, _, err := h.Store.Redrive(b.ctx, w)
		b.must(err)
		if row.Status != pipeline.TaskPending {
			b.Errorf("got %s, want pending", row.Status)
		}
	})
	for _, s := range []pipeline.TaskStatus{pipeline.TaskPending, pipeline.TaskClaimed, pipeline.TaskParked} {
		b.run(string(s), func(b *bench) {
			w := partial(b)
			w.Task = NewRow(b.job, pipeline.WorkTask(2), status(s))
			b.put(w.Task)
			_, _, err := h.Store.Redrive(b.ctx, w)
			b.refused(err, w.Task)
			b.untouched(w)
		})
	}
}

func cancelMeetsRedrive(t *testing.T, h Harness) {
	b := newBench(t, h)
	prepare := func(b *bench) (pipeline.RedriveWrite, pipeline.Job) {
		w := partial(b)
		cancelled := w.Job
		cancelled.Status = pipeline.JobCancelling
		return w, cancelled
	}
	b.run("the cancel first", func(b *bench) {
		w, cancelled := prepare(b)
		_, err := h.Store.SetJob(b.ctx, w.Job, cancelled)
		b.must(err)
		_, _, err = h.Store.Redrive(b.ctx, w)
		b.refused(err, w.Task)
	})
	b.run("the redrive first", func(b *bench) {
		w, cancelled := prepare(b)
		_, reopened, err := h.Store.Redrive(b.ctx, w)
		b.must(err)
		stands, err := h.Store.SetJob(b.ctx, w.Job, cancelled)
		b.fails(err, pipeline.ErrFenced)
		if stands != reopened {
			b.Errorf("got %s, want the reopened job", pipeline.Encode(stands))
		}
	})
	b.run("both at once", func(b *bench) {
		for n := range 20 {
			b.run(fmt.Sprint(n), func(b *bench) {
				w, cancelled := prepare(b)
				errs := make([]error, 2)
				together(2, func(i int) {
					errs[i] = steadily(func() (err error) {
						if i == 0 {
							_, _, err = h.Store.Redrive(b.ctx, w)
						} else {
							_, err = h.Store.SetJob(b.ctx, w.Job, cancelled)
						}
						return err
					})
				})
				job, err := h.Store.Job(b.ctx, b.job)
				b.must(err)
				row := b.read(w.Task.Ref)
				redriven := errs[0] == nil
				if redriven == (errs[1] == nil) || redriven != (job == w.Reopened) || redriven != (row.Status == pipeline.TaskPending) {
					b.Fatalf("redrive: %v, cancel: %v, job %s, task %s; want exactly one of them whole", errs[0], errs[1], job.Status, row.Status)
				}
			})
		}
	})
}

func lostRedrive(t *testing.T, h Harness) {
	b := newBench(t, h)
	w := partial(b)
	loses(b, "Redrive", func(s pipeline.Store) error { _, _, err := s.Redrive(b.ctx, w); return err })
	row := b.read(w.Task.Ref)
	if row.Generation != w.Task.Generation+1 || row.Status != pipeline.TaskPending {
		t.Errorf("got %s at generation %d, want pending at %d", row.Status, row.Generation, w.Task.Generation+1)
	}
	_, _, err := h.Store.Redrive(b.ctx, w)
	b.refused(err, row)
}
