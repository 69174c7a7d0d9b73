package pipeline_test

import (
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

func TestSetbacks(t *testing.T) {
	const now pipeline.Instant = 1_000_000
	row := func(n int, status pipeline.TaskStatus, ready time.Duration, reason pipeline.Failure) pipeline.Task {
		return pipeline.Task{Ref: pipeline.Ref{ID: pipeline.WorkTask(n)}, Status: status, ReadyAt: now.Add(ready), Reason: reason}
	}
	got := pipeline.Setbacks([]pipeline.Task{
		row(0, pipeline.TaskPending, 0, pipeline.Fail(pipeline.Quota, "the daily quota is used up")),
		row(1, pipeline.TaskPending, 40*time.Second, pipeline.Fail(pipeline.Broken, "exit 1 of item 1")),
		row(2, pipeline.TaskPending, 24*time.Second, pipeline.Fail(pipeline.Broken, "exit 1 of item 2")),
		row(3, pipeline.TaskClaimed, -time.Hour, pipeline.Fail(pipeline.Broken, "exit 1 of item 3")),
		row(4, pipeline.TaskAbandoned, 0, pipeline.Fail(pipeline.Broken, "exit 1 of item 4")),
		row(5, pipeline.TaskParked, 0, pipeline.Fail(pipeline.Paused, "the job is paused")),
		row(6, pipeline.TaskPending, 0, pipeline.Failure{}),
	})
	want := []string{"3 tasks, next attempt in 24 s: broken: exit 1 of item 1", "1 task: quota: the daily quota is used up"}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v: one for each reason of what has not ended", got, want)
	}
	for i, s := range got {
		if text := s.Text(now); text != want[i] {
			t.Errorf("got %q, want %q", text, want[i])
		}
	}
}
