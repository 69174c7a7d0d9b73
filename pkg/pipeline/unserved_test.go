package pipeline

import (
	"context"
	"errors"
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
			got := Unserved(c.job, c.rows, Cooldown{}, now)
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
	t.Run("while the breaker is open and a moment after, that is what they wait for; then a worker again", func(t *testing.T) {
		down := Cooldown{Until: now, Reason: Fail(Unavailable, "nobody answers at the model's address")}
		rows := []Task{row(0, TaskPending, time.Minute, 0)}
		for at, unserved := range map[Instant]bool{now - 1: false, now: false, now.Add(unservedAfter) - 1: false, now.Add(unservedAfter): true} {
			got := Unserved(job, rows, down, at)
			if len(got) != 1 || got[0].Unserved != unserved || strings.Contains(got[0].Cause, down.Reason.Cause) == unserved || strings.Contains(got[0].Cause, "start one") != unserved {
				t.Errorf("%v after: got %+v", at.Sub(now), got)
			}
		}
	})
}

// breakerAs answers how a breaker stands, and notes who asked.
type breakerAs struct {
	stands Cooldown
	err    error
	asked  []string
}

func (b *breakerAs) Cooldown(_ context.Context, model string) (Cooldown, error) {
	b.asked = append(b.asked, model)
	return b.stands, b.err
}

func TestHeldBack(t *testing.T) {
	now := Instant(1_000_000)
	job := Job{ID: "j", Status: JobRunning, Model: "m@1"}
	waits := Task{Ref: Ref{Job: "j", ID: WorkTask(0)}, Status: TaskPending, ReadyAt: 1}
	failed := Task{Ref: Ref{Job: "j", ID: WorkTask(1)}, Status: TaskPending, ReadyAt: now + 1, Reason: Fail(Unavailable, "down")}
	open := Cooldown{Until: now + 1000, Reason: Fail(Unavailable, "nobody answers")}
	for _, c := range []struct {
		name    string
		rows    []Task
		breaker breakerAs
		asked   int
		want    []string
	}{
		{"an open breaker is what chunks wait for", []Task{waits, failed}, breakerAs{stands: open}, 1, []string{"nobody answers", "down"}},
		{"a closed one is not", []Task{waits, failed}, breakerAs{}, 1, []string{"no worker that has m@1", "down"}},
		{"one that cannot be read hides nothing", []Task{waits, failed}, breakerAs{stands: open, err: errors.New("refused")}, 1, []string{"no worker that has m@1", "down"}},
		{"it is not read where none waits for a worker", []Task{failed}, breakerAs{stands: open}, 0, []string{"down"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := HeldBack(t.Context(), &c.breaker, job, c.rows, now)
			if len(got) != len(c.want) || len(c.breaker.asked) != c.asked || c.asked > 0 && c.breaker.asked[0] != job.Model {
				t.Fatalf("got %+v, the breaker of %v read; want %q and %d reads", got, c.breaker.asked, c.want, c.asked)
			}
			for i, want := range c.want {
				if !strings.Contains(got[i].Cause, want) {
					t.Errorf("got %q, want %q in it", got[i].Cause, want)
				}
			}
		})
	}
}
