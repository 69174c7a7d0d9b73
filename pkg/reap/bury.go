package reap

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// letterContext is how many attempts' records a dead letter carries: the newest. The rest are in the table.
const letterContext = 20

// Bury sends an abandoned row's dead letter, with its attempts' records, and marks it: then the row leaves the due
// index. Killed in between, it is sent twice: never not at all.
func (r *Reaper) Bury(ctx context.Context, row pipeline.Task) error {
	if row.Status != pipeline.TaskAbandoned || row.Buried {
		return nil
	}
	history, err := pipeline.ReadHistory(ctx, r.cfg.Store, row.Ref)
	if err != nil {
		return err
	}
	records := row.Counting(history.Records)
	now := r.cfg.Clock.Now()
	letter := pipeline.DeadLetter{
		Body: pipeline.Encode(row.Message()), Job: row.Job, Task: row.ID, Reason: row.Reason,
		Context: records[max(0, len(records)-letterContext):], SentAt: now, BuriedAt: now,
	}
	if err := r.cfg.Queues.Of(row.ID.Kind()).Bury(ctx, letter); err != nil {
		return fmt.Errorf("send the dead letter of %s: %w", row.Ref, err)
	}
	return r.cfg.Store.Buried(ctx, row.Ref, row.Generation)
}

// Exhaust applies Next to a pending row whose attempts are used up: finished work is done, the rest is abandoned.
func (r *Reaper) Exhaust(ctx context.Context, row pipeline.Task) error {
	now := r.cfg.Clock.Now()
	reason := row.Reason
	if reason.None() {
		reason = pipeline.Fail(pipeline.Exhausted, "%d attempts are used up; the policy allows %d", row.Attempts, r.cfg.Policy.MaxAttempts)
	}
	e := pipeline.Ending{Outcome: pipeline.FailedNow, Failure: reason}
	v := pipeline.Next(r.cfg.Policy, pipeline.StandingOf(row, 0), e, now, 0)
	if !v.Status.Ended() {
		return nil // the cap was raised meanwhile
	}
	closed, err := r.cfg.Store.Close(ctx, pipeline.CloseWrite{Seen: row, Status: v.Status, Reason: reason, Due: v.DueAt(r.cfg.Policy, now)})
	if err != nil {
		return fmt.Errorf("end %s, whose attempts are used up: %w", row.Ref, err)
	}
	r.cfg.Log.WarnContext(ctx, "exhausted row ended", "task", row.Ref.String(), "status", closed.Status, "attempts", row.Attempts)
	return errors.Join(r.Bury(ctx, closed), r.open(ctx, closed))
}
