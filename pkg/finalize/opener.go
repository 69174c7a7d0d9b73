package finalize

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// OpenerStore is what the opener asks of the store.
type OpenerStore interface {
	pipeline.Jobs
	pipeline.Tasks
	pipeline.Items
	pipeline.Reaping
}

// Opener opens the finalize of a job whose tasks have all ended. Whoever ends a task calls it, and so does the reaper.
type Opener struct {
	Store  OpenerStore
	Queues pipeline.Queues
	Clock  pipeline.Clock
	Policy pipeline.Policy
}

// writeRounds bounds how often a row that moved is tried again before it is left to the next call.
const writeRounds = 5

// MaybeFinalize puts the finalize of the job's epoch and rings it, once every task has ended. A split that ended
// otherwise than done is closed first, and so are rows of a split that are gone. A job whose finalize was given up, or is
// not through long after the deadline, and one whose split or manifest is gone, is failed: never finalized for ever.
// Repeating it is harmless; on a job that is not so far it is a few reads.
func (o Opener) MaybeFinalize(ctx context.Context, id pipeline.JobID) error {
	job, err := o.Store.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("open the finalize of job %s: %w", id, err)
	}
	if job.Status.Ended() {
		return nil
	}
	if err := o.maybe(ctx, job); err != nil {
		return fmt.Errorf("open the finalize of job %s: %w", id, err)
	}
	return nil
}

func (o Opener) maybe(ctx context.Context, job pipeline.Job) error {
	state, ended, err := AllEnded(ctx, o.Store, o.Store, job.ID)
	if !gone(state, err).None() || state.absent() > 0 { // nothing is called lost for one look
		state, ended, err = AllEnded(ctx, o.Store, o.Store, job.ID)
	}
	row, opened := state.Finalize[pipeline.FinalizeTask(job.Epoch)]
	lost := gone(state, err)
	switch {
	case row.Status == pipeline.TaskAbandoned || row.Status == pipeline.TaskCancelled:
		return o.fail(ctx, job, pipeline.Fail(pipeline.Exhausted, "its finalize was given up: %s", row.Reason))
	case opened && o.tooLate(job, row.ReadyAt):
		return o.fail(ctx, job, pipeline.Fail(pipeline.Exhausted, "its finalize was not through long after the job's deadline"))
	case !lost.None():
		return o.fail(ctx, job, lost)
	case err != nil && o.tooLate(job, 0) && !errors.Is(err, pipeline.ErrBusy) && ctx.Err() == nil:
		return o.fail(ctx, job, pipeline.Fail(pipeline.StoreFault, "what is stored of it cannot be read, long after its deadline: %v", err))
	case err != nil:
		return err
	case !ended:
		ended, err = o.close(ctx, job, state)
	}
	// Long after the deadline a finalize is opened whatever is still open: its attempts are the number that ends this.
	if !opened && (ended || o.tooLate(job, 0)) {
		return o.put(ctx, job)
	}
	return err
}

// gone is why there is nothing to decide the job from: what a job needs and nothing brings back. Submit put the split's
// row with the job's, and a split is done only after its manifest was stored.
func gone(state State, err error) pipeline.Failure {
	switch {
	case errors.Is(err, errCorrupt):
		return pipeline.Fail(pipeline.StoreFault, "its manifest cannot be read: %v", err)
	case err != nil:
		return pipeline.Failure{}
	case state.Split.ID == "":
		return pipeline.Fail(pipeline.StoreFault, "the row of its split is missing")
	case state.Split.Status == pipeline.TaskDone && !state.Known:
		return pipeline.Fail(pipeline.StoreFault, "its manifest is missing, though its split is done")
	}
	return pipeline.Failure{}
}

// close closes what nobody else will, and says whether all has ended then.
func (o Opener) close(ctx context.Context, job pipeline.Job, state State) (ended bool, err error) {
	switch {
	case !state.Split.Status.Ended():
		return false, nil
	case state.Split.Status != pipeline.TaskDone:
		if err := o.closeSplit(ctx, job, state); err != nil {
			return false, fmt.Errorf("close its split: %w", err)
		}
	case state.absent() == 0:
		return false, nil
	case job.Status == pipeline.JobRunning, job.Status == pipeline.JobCancelling, job.Expired(o.Clock.Now()):
		if err := o.closeLost(ctx, job, state); err != nil {
			return false, fmt.Errorf("close its missing rows: %w", err)
		}
	}
	_, ended, err = AllEnded(ctx, o.Store, o.Store, job.ID)
	return ended, err
}

// put puts the finalize row and rings it. Only its maker rings: the row is due, so a lost bell is the reaper's.
func (o Opener) put(ctx context.Context, job pipeline.Job) error {
	now := o.Clock.Now()
	row := pipeline.Task{
		Ref:    pipeline.Ref{Job: job.ID, ID: pipeline.FinalizeTask(job.Epoch)},
		Tenant: job.Tenant, Status: pipeline.TaskPending, Stages: 1,
		ReadyAt: now, DueAt: now.Add(o.Policy.RenewEvery),
	}
	if err := pipeline.PutRows(ctx, o.Store, o.Clock, []pipeline.Task{row}, nil); err != nil {
		return err
	}
	_ = o.Queues.Ring(ctx, row) // lost: the row is due, and the reaper rings
	return nil
}

// closeSplit closes a split that will not be done: a manifest of no chunks if there is none, so that a late split adds
// nothing, else its missing rows as cancelled; and it ends the rows that nobody holds.
func (o Opener) closeSplit(ctx context.Context, job pipeline.Job, state State) error {
	reason := closingReason(job, state.Split)
	body, err := o.Store.PutItemOnce(ctx, job.ID, pipeline.ManifestKey, pipeline.Manifest{Closed: true}.Encode())
	if err != nil {
		return fmt.Errorf("put a manifest of no chunks: %w", err)
	}
	m, err := pipeline.DecodeManifest(body)
	if err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if !state.Known { // a late split may have put rows since: look again
		if state, _, err = AllEnded(ctx, o.Store, o.Store, job.ID); err != nil {
			return err
		}
	}
	var absent []pipeline.Task
	for n := range m.Chunks {
		if n >= len(state.Work) || state.Work[n].ID == "" {
			absent = append(absent, missingRow(job, state, n, reason))
		}
	}
	if err := o.putCancelled(ctx, absent); err != nil {
		return err
	}
	for _, row := range state.Work {
		if err := o.closeRow(ctx, row, reason); err != nil {
			return err
		}
	}
	return nil
}

// closeLost puts rows that the manifest names and that are gone, as cancelled: their cells are missing and say why. A
// generation that was used before is not used again, so that what the lost row left behind is not taken for a new
// attempt's.
func (o Opener) closeLost(ctx context.Context, job pipeline.Job, state State) error {
	var lost []pipeline.Task
	for n, row := range state.Work {
		if row.ID != "" {
			continue
		}
		row = missingRow(job, state, n, pipeline.Fail(pipeline.StoreFault, "its row is missing"))
		history, err := pipeline.ReadHistory(ctx, o.Store, row.Ref)
		if err != nil {
			return err
		}
		for _, r := range history.Records {
			row.Generation = max(row.Generation, r.Generation+1)
		}
		for _, j := range history.Journals {
			row.Generation = max(row.Generation, j.Generation+1)
		}
		lost = append(lost, row)
	}
	return o.putCancelled(ctx, lost)
}

// putCancelled puts rows that end as they are put, each with the record of its stage first, as every cancelled row has.
func (o Opener) putCancelled(ctx context.Context, rows []pipeline.Task) error {
	for _, row := range rows {
		body := pipeline.Encode(pipeline.NewCancellation(row, "", row.Reason, o.Clock.Now()))
		if _, err := o.Store.PutItemOnce(ctx, row.Job, pipeline.CancellationKey(row.ID), body); err != nil {
			return fmt.Errorf("record at which stage %s stopped: %w", row.Ref, err)
		}
	}
	return pipeline.PutRows(ctx, o.Store, o.Clock, rows, nil)
}

// missingRow is the row of a chunk that has none, as cancelled. It has as many stages as its neighbours, for a redrive.
func missingRow(job pipeline.Job, state State, n int, reason pipeline.Failure) pipeline.Task {
	row := pipeline.Task{
		Ref:    pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(n)},
		Tenant: job.Tenant, Status: pipeline.TaskCancelled, Stages: 1, Reason: reason,
	}
	for _, neighbour := range state.Work {
		row.Stages = max(row.Stages, neighbour.Stages)
	}
	return row
}

func closingReason(job pipeline.Job, split pipeline.Task) pipeline.Failure {
	if job.Status == pipeline.JobCancelling && !job.Reason.None() {
		return job.Reason
	}
	return pipeline.Fail(pipeline.Cancelled, "the split of the document is %s: %s", split.Status, split.Reason)
}

// closeRow ends a row that nobody holds; a claimed one is its worker's or the reaper's to end.
func (o Opener) closeRow(ctx context.Context, row pipeline.Task, reason pipeline.Failure) error {
	for range writeRounds {
		if row.Status != pipeline.TaskPending && row.Status != pipeline.TaskParked {
			return nil
		}
		_, err := pipeline.CancelRow(ctx, o.Store, row, reason, o.Clock.Now())
		old, refused := pipeline.Old(err)
		switch {
		case err == nil, refused && old == nil:
			return nil
		case !refused:
			return err
		}
		row = *old
	}
	return nil
}

// tooLate says that the finalize had time for all of its attempts after the deadline, and after it was ready, and did
// not use it.
func (o Opener) tooLate(job pipeline.Job, ready pipeline.Instant) bool {
	grace := time.Duration(o.Policy.MaxAttempts) * (o.Policy.AttemptTimeout + o.Policy.DeferralLimit)
	now := o.Clock.Now()
	return job.Expired(now) && now > max(job.Deadline, ready).Add(grace)
}

// fail ends the job without a result: nothing could be put together. Fenced means that it moved, and needs no failing.
func (o Opener) fail(ctx context.Context, job pipeline.Job, why pipeline.Failure) error {
	next := job
	next.Status, next.EndedAt, next.Reason = pipeline.JobFailed, o.Clock.Now(), why
	next.Reason.Detail = job.Reason.Cause // of a cancel, if there was one
	_, err := o.Store.SetJob(ctx, job, next)
	if err != nil && !errors.Is(err, pipeline.ErrFenced) {
		return fmt.Errorf("fail it, since %s: %w", why.Cause, err)
	}
	return nil
}
