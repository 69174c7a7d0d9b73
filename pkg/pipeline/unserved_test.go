package pipeline

import (
	"strings"
	"testing"
	"time"
)

func TestUnserved(t *testing.T) {
	now := Instant(1_000_000)
	job := Job{ID: "j", Status: JobRunning, Model: ExecHandler}
	row := func(n int, status TaskStatus, ready time.Duration, claimed time.Duration) Task {
		r := Task{Ref: Ref{Job: "j", ID: WorkTask(n)}, Status: status, ReadyAt: now.Add(-ready)}
		if claimed > 0 {
			r.ClaimedAt = now.Add(-claimed)
		}
		return r
	}
	paused := job
	paused.Status = JobPaused
	split := Task{Ref: Ref{Job: "j", ID: SplitTask}, Status: TaskPending}
	for _, c := range []struct {
		name  string
		job   Job
		rows  []Task
		tasks int
	}{
		{"chunks that nobody takes", job, []Task{row(0, TaskPending, time.Minute, 0), row(1, TaskPending, time.Minute, 0), row(2, TaskDone, time.Hour, time.Hour)}, 2},
		{"those that waited a moment only", job, []Task{row(0, TaskPending, unservedAfter-1, 0)}, 0},
		{"those that wait for their next attempt", job, []Task{row(0, TaskPending, -time.Minute, time.Hour)}, 0},
		{"a job that somebody works on", job, []Task{row(0, TaskPending, time.Minute, 0), row(1, TaskClaimed, time.Minute, time.Minute)}, 0},
		{"a job that somebody worked on a moment ago", job, []Task{row(0, TaskPending, time.Minute, 0), row(1, TaskDone, time.Minute, time.Second)}, 0},
		{"a paused job", paused, []Task{row(0, TaskPending, time.Minute, 0)}, 0},
		{"a split, which any worker does", job, []Task{split}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Unserved(c.job, c.rows, now)
			if c.tasks == 0 {
				if len(got) > 0 {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if len(got) != 1 || len(got[0].Tasks) != c.tasks || !strings.Contains(got[0].Text(now), "start one: holdfast worker --allow-exec") {
				t.Errorf("got %+v, want %d tasks and what to start", got, c.tasks)
			}
		})
	}
}
