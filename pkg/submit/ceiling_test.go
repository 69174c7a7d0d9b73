package submit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
)

func TestCeilingOfAJobThatStands(t *testing.T) {
	again := func(b *bench, ceiling pipeline.Money) (pipeline.Job, bool, error) {
		sub := submission()
		sub.Hold, sub.MaxCost = true, ceiling
		return b.Submit(t.Context(), sub)
	}
	t.Run("a planned job takes the ceiling that is asked for", func(t *testing.T) {
		b := newBench(t)
		planned(b)
		job, stood, err := again(b, pipeline.Dollar/10)
		b.must(err)
		if !stood || job.MaxCost != pipeline.Dollar/10 {
			t.Errorf("got the ceiling %s (stood %v), want $0.10", job.MaxCost, stood)
		}
		plan, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		if plan.Ceiling != pipeline.Dollar/10 {
			t.Errorf("got a plan with the ceiling %s, want $0.10", plan.Ceiling)
		}
	})
	t.Run("a job that began refuses another ceiling, and takes no ceiling as it is", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		_, err := b.Start(t.Context(), job.ID)
		b.must(err)
		if _, _, err := again(b, pipeline.Dollar/10); !errors.Is(err, submit.ErrStands) {
			t.Errorf("got the error %v, want that its ceiling is fixed", err)
		}
		if _, stood, err := again(b, 0); err != nil || !stood {
			t.Errorf("got stood %v, error %v; want the job that stands", stood, err)
		}
	})
}

func TestStartMeetsTheReaper(t *testing.T) {
	b := newBench(t)
	job := planned(b)
	postponed := 0
	b.cfg.Store = pipelinetest.Wrap(b.store, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
		if op.Name == "Unpark" && postponed < 3 { // a sweep that still knows the job as planned is faster
			postponed++
			row, err := b.store.Task(ctx, pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(postponed - 1)})
			b.must(err)
			_, err = b.store.Postpone(ctx, row, b.clock.Now().Add(15*time.Minute))
			b.must(err)
		}
		return do(ctx)
	})
	_, err := submit.New(b.cfg).Start(t.Context(), job.ID)
	b.must(err)
	for id, row := range b.rows(job.ID) {
		if id.Kind() == pipeline.TaskWork && row.Status != pipeline.TaskPending {
			t.Errorf("%s is %s until %s, want pending", id, row.Status, row.DueAt)
		}
	}
}
