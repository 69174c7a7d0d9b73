package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// expired is what a sweep, and an observer, call it.
const expired = "expired"

// Expire ends a claim that had lapsed at a time from before the row was read: the record first, then the row by the same
// rule as its worker would have used. A worker that renewed since, with answers that the row does not show yet, keeps it.
func (r *Reaper) Expire(ctx context.Context, row pipeline.Task, at pipeline.Instant) (pipeline.Task, error) {
	return r.expire(ctx, row, at, "")
}

// Exited expires, at once, every claim of a worker of this machine whose exit the caller has waited for, and releases
// the deliveries it died with. It returns how many claims there were.
func (r *Reaper) Exited(ctx context.Context, worker string) (int, error) {
	horizon := r.cfg.Clock.Now().Add(r.cfg.Policy.JobDeadline)
	n := 0
	var errs []error
	for shard := range pipeline.DueShards {
		for cursor := ""; ; {
			rows, next, err := r.cfg.Store.Due(ctx, shard, horizon, cursor)
			if err != nil {
				errs = append(errs, err)
				break
			}
			for _, row := range rows {
				if row.Status != pipeline.TaskClaimed || row.ClaimedBy != worker {
					continue
				}
				if _, err := r.expire(ctx, row, r.cfg.Clock.Now(), worker); err != nil && !errors.Is(err, pipeline.ErrFenced) {
					errs = append(errs, err)
					continue
				}
				n++
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	if r.cfg.Release != nil {
		errs = append(errs, r.cfg.Release(ctx, worker))
	}
	return n, errors.Join(errs...)
}

func (r *Reaper) expire(ctx context.Context, row pipeline.Task, now pipeline.Instant, exited string) (pipeline.Task, error) {
	deadline, err := r.deadline(ctx, row.Job)
	if err != nil {
		return row, err
	}
	reason := lossOf(row, exited, now)
	e := pipeline.Ending{Outcome: pipeline.Died, Failure: reason}
	v := pipeline.Next(r.cfg.Policy, pipeline.StandingOf(row, deadline), e, now, r.cfg.Jitter())
	record := pipeline.Record{
		Task: row.ID, Generation: row.Generation, Attempt: row.Attempts, Ender: pipeline.ExpiredBy, Previous: row.EndedBy,
		Worker: row.ClaimedBy, Stage: row.Accepted + 1, ClaimedAt: row.ClaimedAt, EndedAt: now,
		Outcome: e.Outcome, Failure: reason, Status: v.Status, Counted: v.Counted, Answers: row.Answers,
	}
	if err := r.sums(ctx, row, &record); err != nil {
		return row, err
	}
	key := pipeline.RecordKey(row.ID, row.Generation, pipeline.ExpiredBy)
	if err := r.cfg.Store.PutItem(ctx, row.Job, key, pipeline.Encode(record)); err != nil {
		return row, fmt.Errorf("write the record of %s: %w", row.Ref, err)
	}
	ended, err := r.cfg.Store.Expire(ctx, pipeline.ExpireWrite{
		Seen: row, Verdict: v, Reason: reason, Now: now, MaxSkew: r.cfg.Policy.MaxSkew, Exited: exited,
		ReadyAt: now.Add(v.Wait), DueAt: v.DueAt(r.cfg.Policy, now),
	})
	if err != nil {
		return row, fmt.Errorf("expire %s: %w", row.Ref, err)
	}
	r.cfg.Log.WarnContext(ctx, "claim expired", "task", row.Ref.String(), "worker", row.ClaimedBy, "status", ended.Status, "generation", row.Generation)
	r.cfg.Observe(ended, expired)
	return ended, r.expired(ctx, ended)
}

// expired sees to what follows: the lost attempt's money, its bell or dead letter, the job's finalize.
func (r *Reaper) expired(ctx context.Context, row pipeline.Task) error {
	errs := []error{r.settle(ctx, row)}
	switch {
	case row.Status == pipeline.TaskAbandoned:
		errs = append(errs, r.Bury(ctx, row))
	case row.Status == pipeline.TaskPending && row.ReadyAt <= r.cfg.Clock.Now():
		_, err := r.ring(ctx, row)
		errs = append(errs, err)
	}
	if row.Status.Ended() {
		errs = append(errs, r.open(ctx, row))
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, pipeline.ErrFenced) {
		return fmt.Errorf("after the expiry of %s: %w", row.Ref, err)
	}
	return nil
}

func lossOf(row pipeline.Task, exited string, now pipeline.Instant) pipeline.Failure {
	stage := row.Accepted + 1
	if exited != "" {
		return pipeline.Fail(pipeline.Lost, "worker %s exited at stage %d without ending its claim", exited, stage)
	}
	silent := now.Sub(row.ExpiresAt).Round(time.Second)
	return pipeline.Fail(pipeline.Lost, "worker %s died or hung at stage %d: its claim lapsed %v ago", row.ClaimedBy, stage, silent)
}

func (r *Reaper) deadline(ctx context.Context, id pipeline.JobID) (pipeline.Instant, error) {
	job, err := r.cfg.Store.Job(ctx, id)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read job %s: %w", id, err)
	}
	return job.Deadline, nil
}

// sums adds up what the lost worker's journal tells. Tries that were allowed and are not in it are known by number
// only; all of them count as sent.
func (r *Reaper) sums(ctx context.Context, row pipeline.Task, record *pipeline.Record) error {
	history, err := pipeline.ReadHistory(ctx, r.cfg.Store, row.Ref)
	if err != nil {
		return err
	}
	spent := 0
	for _, earlier := range row.Counting(history.Records) {
		if earlier.Generation < row.Generation {
			spent += earlier.Charged
		}
	}
	for _, page := range history.Journals {
		if page.Generation == row.Generation {
			record.Add(page.Tries...)
		}
	}
	named := record.Charged
	record.Charged = max(named, row.Allowed-spent)
	record.Unnamed = record.Charged - named
	return nil
}

// settle closes what the lost attempts of the row had reserved, as fully spent: nobody knows better.
func (r *Reaper) settle(ctx context.Context, row pipeline.Task) error {
	budget, err := r.cfg.Store.Budget(ctx, row.Job)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the budget: %w", err)
	}
	var lost []pipeline.Reservation
	for _, open := range budget.Open {
		if open.Task == row.ID && open.Generation <= row.Generation {
			lost = append(lost, open)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if _, err := r.cfg.Store.Settle(ctx, row.Job, lost...); err != nil {
		return fmt.Errorf("settle what was reserved: %w", err)
	}
	return nil
}
