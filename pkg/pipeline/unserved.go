package pipeline

import (
	"context"
	"time"
)

// unservedAfter is how long chunks may wait without a claim before that is told.
const unservedAfter = 10 * time.Second

// Breaker is what is asked of a model's breaker by those who only tell of it.
type Breaker interface {
	// Cooldown is as in [Limits].
	Cooldown(ctx context.Context, model string) (Cooldown, error)
}

// HeldBack is [Unserved] and [Setbacks] of a job's rows. The breaker is read only where chunks wait for a worker; one
// that cannot be read hides nothing.
func HeldBack(ctx context.Context, breaker Breaker, job Job, rows []Task, now Instant) []Setback {
	waiting := Unserved(job, rows, Cooldown{}, now)
	if len(waiting) > 0 {
		if known, err := breaker.Cooldown(ctx, job.Model); err == nil {
			waiting = Unserved(job, rows, known, now)
		}
	}
	return append(waiting, Setbacks(rows)...)
}

// Unserved is what chunks wait for that nobody takes: a worker that has the job's model or handler. Workers that lack it
// leave them, so nothing else tells of it. It is empty while chunks are claimed. While the breaker of the job's model is
// open, and for a moment after, they wait for that: its workers receive nothing, and nobody needs to start another.
func Unserved(job Job, rows []Task, breaker Cooldown, now Instant) []Setback {
	if job.Status != JobRunning {
		return nil
	}
	var waiting []TaskID
	since := now
	for _, row := range rows {
		switch {
		case row.ID.Kind() != TaskWork:
		case row.Status == TaskClaimed, row.ClaimedAt != 0 && now.Sub(row.ClaimedAt) < unservedAfter:
			return nil
		case row.Status == TaskPending && now.Sub(row.ReadyAt) >= unservedAfter:
			waiting = append(waiting, row.ID)
			since = min(since, row.ReadyAt)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if breaker.Until != 0 && now.Sub(breaker.Until) < unservedAfter {
		return []Setback{{Kind: Busy, Tasks: waiting, Cause: breaker.Refusal(job.Model).Cause}}
	}
	return []Setback{{
		Kind: Busy, Tasks: waiting, Unserved: true,
		Cause: Fail(Busy, "no worker that has %s takes them, since %s; start one: %s", job.Model, since, WorkerFor(job.Model)).Cause,
	}}
}

// WorkerFor is the command that starts a worker with a model or handler.
func WorkerFor(model string) string {
	if model == ExecHandler {
		return "holdfast worker --allow-exec"
	}
	return "holdfast worker with its --model, or the worker command of the program that registers it"
}
