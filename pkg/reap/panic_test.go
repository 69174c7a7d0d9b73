package reap_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestWhatNobodyCanLookAtStopsNoSweep(t *testing.T) {
	panics := func(op, on string) func(*bench) {
		return func(b *bench) {
			b.ports(func(ctx context.Context, at pipelinetest.Op, do func(context.Context) error) error {
				if at.Name == op && at.On == on {
					panic("a bug")
				}
				return do(ctx)
			})
		}
	}
	in(t, "a row whose move panics is put off, as one that errors, and the others are moved on", func(b *bench) {
		bad := b.row(0)
		for n := range 20 {
			b.row(1 + n)
		}
		report := b.sweep(time.Hour)
		b.count("rows rung", len(b.bells(b.work)), 20)
		b.count("errors", report["errors"], 1)
		if row := b.status(bad.Ref, pipeline.TaskPending); row.DueAt <= b.clock.Now() {
			b.Errorf("it is due %s, want that it was put off", row.DueAt)
		}
	}, panics("Ring", chunk0.String()))
	in(t, "a job whose look panics is told, and the sweep goes on", func(b *bench) {
		const other pipeline.JobID = "1123456789-1"
		split := pipelinetest.NewRow(other, pipeline.SplitTask, func(t *pipeline.Task) { t.Status, t.Stages, t.Accepted = pipeline.TaskDone, 1, 1 })
		_, _, err := b.store.Submit(b.ctx, pipelinetest.NewJob(other, func(j *pipeline.Job) { j.CreatedAt++ }), split)
		b.must(err)
		b.clock.Advance(time.Minute)
		_, err = b.Sweep(b.ctx)
		if err == nil || !strings.Contains(err.Error(), "job "+string(theJob)+": panic: a bug, in ") {
			b.Errorf("got error %v, want the job, the panic and its place", err)
		}
		if !b.looked[other] || b.looked[theJob] {
			b.Errorf("looked at %v, want the other job alone", b.looked)
		}
	}, panics("Job", string(theJob)))
	in(t, "nor does an ended one whose replies cannot be kept", func(b *bench) {
		b.job(pipeline.JobCompleted, func(j *pipeline.Job) { j.EndedAt = b.clock.Now() })
		b.clock.Advance(1000 * time.Hour)
		if _, err := b.Sweep(b.ctx); err == nil || !strings.Contains(err.Error(), "panic: a bug") {
			b.Errorf("got error %v, want the panic", err)
		}
	}, func(b *bench) {
		b.cfg.Keeper = unkept{b}
		b.cfg.KeepReplies = func(context.Context, pipeline.Job) error { panic("a bug") }
	})
}

// unkept lists the job until it is marked.
type unkept struct{ b *bench }

func (u unkept) Unmarked(ctx context.Context, _ pipeline.Instant, _ string) ([]pipeline.Job, string, error) {
	job, err := u.b.store.Job(ctx, theJob)
	return []pipeline.Job{job}, "", err
}

func (unkept) Unmark(context.Context, pipeline.JobID) error { return nil }

func (unkept) Mark(context.Context, pipeline.Job) error { return nil }
