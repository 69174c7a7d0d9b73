package pipeline

import "time"

// unservedAfter is how long chunks may wait without a claim before that is told.
const unservedAfter = 10 * time.Second

// Unserved is what chunks wait for that nobody takes: a worker that has the job's model or handler. Workers that lack it
// leave them, so nothing else tells of it. It is empty while chunks are claimed.
func Unserved(job Job, rows []Task, now Instant) []Setback {
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
	return []Setback{{
		Kind: Busy, Tasks: waiting,
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
