package reap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"holdfast/pkg/pipeline"
)

// Keeper is a store that deletes in time what jobs left: [pipeline.Policy].Retention after their end. Replies, which
// belong to no one job, have twice that from their last use, so that those of a job outlive the rest of it.
//
// Nothing of an open job may go, however long a person pauses it, and all of an ended one must get its end, whoever
// died in between.
type Keeper interface {
	// Unmarked is one page of the jobs that had ended by then and whose items have no end yet.
	Unmarked(ctx context.Context, ended pipeline.Instant, cursor string) (jobs []pipeline.Job, next string, err error)
	// Mark gives the items of an ended job their end, and takes it off the list of those without. A job that was
	// reopened meanwhile keeps all of its items. Repeating it is harmless.
	Mark(ctx context.Context, job pipeline.Job) error
	// Unmark takes their end from the items of an open job.
	Unmark(ctx context.Context, job pipeline.JobID) error
}

const (
	// markEvery is how often it is looked for jobs that ended: nothing waits for their marks.
	markEvery = time.Minute
	// markAfter is how long after a job's end its items are marked: by then the last late worker has written what it had.
	markAfter = time.Hour
	// keepings is how many times in a job's retention its replies are kept.
	keepings = 4
)

// keepEvery is how long replies of an open job are left alone. Any that were read or written since have more than a
// retention left: see [Keeper].
func (r *Reaper) keepEvery() time.Duration { return r.cfg.Policy.Retention / keepings }

// markEnded gives what ended jobs left its end.
func (r *Reaper) markEnded(ctx context.Context, end time.Duration, report Report) error {
	if r.cfg.Keeper == nil || !r.markTurn() {
		return nil
	}
	var errs []error
	ended := r.cfg.Clock.Now().Add(-markAfter)
	for cursor := ""; r.cfg.Clock.Mono() < end; {
		jobs, next, err := r.cfg.Keeper.Unmarked(ctx, ended, cursor)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, job := range jobs {
			if r.cfg.Clock.Mono() >= end {
				return errors.Join(errs...) // what is marked is off the list: the next one goes on
			}
			if err := guard(func() error { return r.markJob(ctx, job) }); err != nil {
				errs = append(errs, fmt.Errorf("job %s: %w", job.ID, err))
				continue
			}
			report["marked"]++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return errors.Join(errs...)
}

// markTurn says that it is time to look for ended jobs, and remembers that it was.
func (r *Reaper) markTurn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Mono()
	if r.marking != 0 && now-r.marking < markEvery {
		return false
	}
	r.marking = max(now, 1)
	return true
}

// markJob marks one. Of a job that began long ago, because it was paused or redriven, or nobody swept meanwhile, the
// first replies may have too little time left.
func (r *Reaper) markJob(ctx context.Context, job pipeline.Job) error {
	if r.cfg.Clock.Now().Sub(begun(job)) >= r.keepEvery() {
		if err := r.cfg.KeepReplies(ctx, job); err != nil {
			return fmt.Errorf("keep its replies: %w", err)
		}
	}
	return r.cfg.Keeper.Mark(ctx, job)
}

func begun(job pipeline.Job) pipeline.Instant { return cmp.Or(job.StartedAt, job.CreatedAt) }

// keepOpen keeps the replies of a job that has been open for long, once in every [Reaper.keepEvery]; an item beside the
// job tells other reapers of it.
func (r *Reaper) keepOpen(ctx context.Context, job pipeline.Job, report Report) error {
	if r.cfg.Keeper == nil {
		return nil
	}
	times := int(r.cfg.Clock.Now().Sub(begun(job)) / r.keepEvery())
	if times < 1 || r.wasKept(job.ID) >= times {
		return nil
	}
	before, err := r.cfg.Store.Item(ctx, job.ID, pipeline.KeptKey)
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return err
	}
	if n, _ := strconv.Atoi(string(before)); n < times { // what is no number was not kept
		if err := errors.Join(r.cfg.Keeper.Unmark(ctx, job.ID), r.cfg.KeepReplies(ctx, job)); err != nil {
			return err
		}
		if err := r.cfg.Store.PutItem(ctx, job.ID, pipeline.KeptKey, []byte(strconv.Itoa(times))); err != nil {
			return err
		}
		report["kept"]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) > lookedRoom {
		clear(r.kept)
	}
	r.kept[job.ID] = times
	return nil
}

func (r *Reaper) wasKept(id pipeline.JobID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[id]
}
