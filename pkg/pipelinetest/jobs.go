package pipelinetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"holdfast/pkg/pipeline"
)

var jobPromises = []promise{
	{"job and split are submitted once, and a second submit changes nothing", submitIsIdempotent},
	{"a submit puts the split of a job that lacks it", submitHeals},
	{"a job is replaced only if epoch and status are those seen", setJobCompares},
	{"a SetJob whose answer was lost is recognised", lostSetJob},
	{"a deleted job is not revived", missingJob},
	{"a tenant's jobs come newest first, in pages, and nobody else's", jobsNewestFirst},
	{"open jobs are those of all tenants that have not ended", openJobs},
	{"rows are put only if absent", putOnlyIfAbsent},
	{"a batch of rows has its limit, and so has a row", rowLimits},
}

func submit(b *bench, edits ...func(*pipeline.Job)) pipeline.Job {
	b.Helper()
	job, created, err := b.Store.Submit(b.ctx, NewJob(b.job, edits...), NewRow(b.job, pipeline.SplitTask))
	b.must(err)
	if !created {
		b.Fatal("the job stands already")
	}
	return job
}

func submitIsIdempotent(t *testing.T, h Harness) {
	b := newBench(t, h)
	job := submit(b)
	split := b.claim(b.read(pipeline.Ref{Job: b.job, ID: pipeline.SplitTask}), "A", T0)
	second := job
	second.Name, second.Deadline = "another name", later
	stands, created, err := h.Store.Submit(b.ctx, second, NewRow(b.job, pipeline.SplitTask))
	b.must(err)
	if created || stands != job {
		t.Errorf("got created %v, job %s; want the one that stands", created, pipeline.Encode(stands))
	}
	b.stands(split)
	read, err := h.Store.Job(b.ctx, b.job)
	if err != nil || read != job {
		t.Errorf("got job %s, error %v; want the first", pipeline.Encode(read), err)
	}
}

func submitHeals(t *testing.T, h Harness) {
	b := newBench(t, h)
	job := submit(b)
	split := NewRow(b.job, pipeline.SplitTask)
	h.Delete(t, split.Ref)
	_, created, err := h.Store.Submit(b.ctx, job, split)
	b.must(err)
	if created {
		t.Error("got created, want the job that stands")
	}
	b.stands(split)
}

func setJobCompares(t *testing.T, h Harness) {
	b := newBench(t, h)
	job := submit(b)
	refused := func(seen, next pipeline.Job) {
		b.Helper()
		stands, err := h.Store.SetJob(b.ctx, seen, next)
		b.fails(err, pipeline.ErrFenced)
		if stands != job {
			t.Errorf("got %s, want the row that stands: %s", pipeline.Encode(stands), pipeline.Encode(job))
		}
		read, err := h.Store.Job(b.ctx, b.job)
		if err != nil || read != job {
			t.Errorf("got job %s, error %v; want it unchanged", pipeline.Encode(read), err)
		}
	}
	next := job
	next.Status, next.CancelledAt = pipeline.JobCancelling, T0
	seen := job
	seen.Epoch++
	refused(seen, next)
	seen = job
	seen.Epoch--
	refused(seen, next)
	seen = job
	seen.Status = pipeline.JobPaused
	refused(seen, next)
	seen = job
	seen.Deadline = later // it was given another since
	refused(seen, next)
	seen = job
	seen.PausedAt = soon // another pause
	refused(seen, next)
	seen = job
	seen.Name = "other" // is not part of the condition
	got, err := h.Store.SetJob(b.ctx, seen, next)
	b.must(err)
	if got != next {
		t.Errorf("got %s, want %s", pipeline.Encode(got), pipeline.Encode(next))
	}
	job = next
	paused := next
	paused.Status = pipeline.JobPaused
	refused(seen, paused)
}

func lostSetJob(t *testing.T, h Harness) {
	b := newBench(t, h)
	job := submit(b)
	next := job
	next.Status, next.Epoch = pipeline.JobPaused, 2
	loses(b, "SetJob", func(s pipeline.Store) error { _, err := s.SetJob(b.ctx, job, next); return err })
	got, err := h.Store.SetJob(b.ctx, job, next)
	b.must(err)
	if got != next {
		t.Errorf("got %s, want %s", pipeline.Encode(got), pipeline.Encode(next))
	}
}

func missingJob(t *testing.T, h Harness) {
	b := newBench(t, h)
	job := NewJob(b.job)
	_, err := h.Store.Job(b.ctx, b.job)
	b.fails(err, pipeline.ErrNotFound)
	_, err = h.Store.SetJob(b.ctx, job, job)
	b.fails(err, pipeline.ErrNotFound)
	_, err = h.Store.Job(b.ctx, b.job)
	b.fails(err, pipeline.ErrNotFound)
}

func jobsNewestFirst(t *testing.T, h Harness) {
	b := newBench(t, h)
	tenant := string(b.job)
	var want []pipeline.JobID
	for n := range 7 {
		id := pipeline.JobID(fmt.Sprintf("%s-%d", b.job, (n*3)%7))
		job := NewJob(id, func(j *pipeline.Job) {
			j.Tenant, j.CreatedAt = tenant, T0+pipeline.Instant(n)
			if n == 3 {
				j.Status = pipeline.JobCompleted
			}
		})
		_, _, err := h.Store.Submit(b.ctx, job, NewRow(id, pipeline.SplitTask))
		b.must(err)
		want = append([]pipeline.JobID{id}, want...)
	}
	other := NewJob(b.job+"-other", func(j *pipeline.Job) { j.Tenant = tenant + "-other" })
	_, _, err := h.Store.Submit(b.ctx, other, NewRow(other.ID, pipeline.SplitTask))
	b.must(err)
	for _, limit := range []int{1, 3, 7, 100} {
		var got []pipeline.JobID
		cursor, pages := "", 0
		for {
			page, next, err := h.Store.Jobs(b.ctx, tenant, cursor, limit)
			b.must(err)
			if len(page) > limit {
				t.Fatalf("got %d jobs, want at most %d", len(page), limit)
			}
			for _, job := range page {
				got = append(got, job.ID)
			}
			if pages++; next == "" || pages > 20 {
				break
			}
			cursor = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: got %v, want %v", limit, got, want)
		}
	}
}

func openJobs(t *testing.T, h Harness) {
	b := newBench(t, h)
	var want []pipeline.JobID
	for n, s := range []pipeline.JobStatus{
		pipeline.JobPlanned, pipeline.JobRunning, pipeline.JobPaused, pipeline.JobCancelling,
		pipeline.JobCompleted, pipeline.JobPartial, pipeline.JobFailed, pipeline.JobCancelled,
	} {
		id := pipeline.JobID(fmt.Sprintf("%s-%d", b.job, n))
		_, _, err := h.Store.Submit(b.ctx, NewJob(id, func(j *pipeline.Job) { j.Status, j.Tenant = s, string(id) }), NewRow(id, pipeline.SplitTask))
		b.must(err)
		if !s.Ended() {
			want = append(want, id)
		}
	}
	mine := func() (got []pipeline.JobID) {
		cursor := ""
		for {
			page, next, err := h.Store.OpenJobs(b.ctx, cursor)
			b.must(err)
			for _, job := range page {
				if pipeline.JobID(job.Tenant) == job.ID && len(job.ID) > len(b.job) && job.ID[:len(b.job)] == b.job {
					got = append(got, job.ID)
				}
			}
			if next == "" {
				slices.Sort(got)
				return got
			}
			cursor = next
		}
	}
	b.eventually(func() bool { return slices.Equal(mine(), want) }, fmt.Sprintf("got %v, want %v", mine(), want))
}

func putOnlyIfAbsent(t *testing.T, h Harness) {
	b := newBench(t, h)
	claimed := b.claim(b.row(), "A", T0)
	b.put(NewRow(b.job, pipeline.WorkTask(0)), NewRow(b.job, pipeline.WorkTask(1)), NewRow(b.job, pipeline.WorkTask(2)))
	b.stands(claimed)
	b.stands(NewRow(b.job, pipeline.WorkTask(0)))
	b.stands(NewRow(b.job, pipeline.WorkTask(2)))
}

func rowLimits(t *testing.T, h Harness) {
	b := newBench(t, h)
	var rows []pipeline.Task
	for n := range pipeline.MaxWrite + 1 {
		rows = append(rows, NewRow(b.job, pipeline.WorkTask(n)))
	}
	if _, err := h.Store.PutTasks(b.ctx, rows); err == nil {
		t.Errorf("a batch of %d rows was taken", len(rows))
	}
	if _, err := h.Store.Task(b.ctx, rows[0].Ref); !errors.Is(err, pipeline.ErrNotFound) {
		t.Errorf("a part of it was put: got error %v, want ErrNotFound", err)
	}
	b.put(rows[:pipeline.MaxWrite]...)
	big := NewRow(b.job, pipeline.WorkTask(99), func(row *pipeline.Task) { row.Reason.Detail = string(make([]byte, pipeline.MaxItem)) })
	_, err := h.Store.PutTasks(b.ctx, []pipeline.Task{big})
	b.fails(err, pipeline.ErrTooLarge)
}
