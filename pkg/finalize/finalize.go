// Package finalize decides that a job is over and writes its result: it opens a job's finalize once every task has
// ended, takes every cell of the plan to a terminal state, merges the findings, and ends the job in one write.
//
// It may decide: the end of a job, which findings stay, and what is reported as missing and why.
// It may not: end a task that somebody works on, ask a model, or change a job that ended or moved meanwhile: cancel,
// redrive and finalize meet on the job's row, and the first wins.
package finalize

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// Store is what the handler asks of the store.
type Store interface {
	pipeline.Jobs
	pipeline.Tasks
	pipeline.Items
	pipeline.Feed
}

// Config is all that a finalizer needs.
type Config struct {
	Store  Store
	Blobs  pipeline.Blobs
	Clock  pipeline.Clock
	Policy pipeline.Policy
	// Kill ends the process when a document holds PoisonMarker, so that tests can see what a finalize that kills its worker
	// comes to. Nil: documents are not looked at.
	Kill func()
}

// PoisonMarker is the text that makes a finalizer with a Kill call it.
const PoisonMarker = "HOLDFAST-POISON-FINALIZE"

// Finalizer is the handler of finalize tasks.
type Finalizer struct{ cfg Config }

var _ pipeline.Handler = (*Finalizer)(nil)

// New is the handler.
func New(cfg Config) *Finalizer { return &Finalizer{cfg: cfg} }

// rounds bounds how often a result is worked out anew because the job's status moved under it.
const rounds = 3

// errMoved says that the job's epoch or status is no longer what the result was worked out for.
var errMoved = errors.New("the job moved while its result was worked out")

// errNotEnded says that some task has not ended: there is nothing to decide yet.
var errNotEnded = errors.New("not all tasks have ended")

// errCorrupt says that what is stored does not fit together: trying again may help only if it was us.
var errCorrupt = errors.New("what is stored does not fit together")

// Handle ends the job that the claimed finalize is of. It may be repeated after a crash anywhere: each write names the
// epoch and the generation it is for, and the job's row changes once.
func (f *Finalizer) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	claim := a.Claim()
	var last error
	for round := range rounds {
		job, err := f.cfg.Store.Job(ctx, claim.Job)
		if err != nil {
			return ending(ctx, a, fmt.Errorf("read the job: %w", err))
		}
		switch {
		case job.Status.Ended():
			return f.over(ctx, a, fmt.Sprintf("the job is %s", job.Status))
		case int64(claim.ID.Number()) != job.Epoch:
			return f.over(ctx, a, fmt.Sprintf("the job was redriven: epoch %d is decided by its own finalize", job.Epoch))
		}
		status, err := f.decide(ctx, a, job, round)
		if err == nil {
			return f.over(ctx, a, fmt.Sprintf("the job is %s", status))
		}
		if !errors.Is(err, errMoved) {
			return ending(ctx, a, err)
		}
		last = err
	}
	return ending(ctx, a, last)
}

// decide works the result out for the job as read, and ends the job if it still stands so.
func (f *Finalizer) decide(ctx context.Context, a pipeline.Attempt, job pipeline.Job, round int) (pipeline.JobStatus, error) {
	state, ended, err := AllEnded(ctx, f.cfg.Store, f.cfg.Store, job.ID)
	if err != nil {
		return "", err
	}
	if !ended {
		return "", fmt.Errorf("%w: %s", errNotEnded, state.Waiting())
	}
	if err := f.poison(ctx, state.Manifest); err != nil {
		return "", err
	}
	result, merged, feed, err := f.work(ctx, a, job, state)
	if err != nil {
		return "", err
	}
	if err := a.Fence(ctx); err != nil {
		return "", err
	}
	if err := f.catchUp(ctx, feed); err != nil {
		return "", err
	}
	if err := f.emit(ctx, a, round, job, merged, feed.last); err != nil {
		return "", err
	}
	return result.Status, f.end(ctx, a.Claim(), job, result)
}

// work puts the result together. Nothing is written.
func (f *Finalizer) work(ctx context.Context, a pipeline.Attempt, job pipeline.Job, state State) (pipeline.Result, Merged, heard, error) {
	fail := func(err error) (pipeline.Result, Merged, heard, error) {
		return pipeline.Result{}, Merged{}, heard{}, err
	}
	body, err := f.cfg.Blobs.Blob(ctx, job.Fingerprint)
	if err != nil {
		return fail(fmt.Errorf("read the definition: %w", err))
	}
	d, err := pipeline.DecodeDefinition(body)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", errCorrupt, err))
	}
	left, err := f.read(ctx, a, job.ID)
	if err != nil {
		return fail(err)
	}
	bodies, err := left.bodies(ctx, state)
	if err != nil {
		return fail(err)
	}
	attempts, err := left.attempts(ctx, int64(a.Claim().ID.Number()), state)
	if err != nil {
		return fail(err)
	}
	tasks, err := left.taskEnds(ctx, state)
	if err != nil {
		return fail(err)
	}
	feed, err := f.readFeed(ctx, job, state, left, bodies)
	if err != nil {
		return fail(err)
	}
	cells := enumerate(d, job, state, bodies)
	if err := left.markRan(ctx, d, state, cells); err != nil {
		return fail(err)
	}
	merged := Merge(d, job, state.Manifest, bodies.all())
	r := pipeline.Result{
		Epoch: job.Epoch, Generation: a.Claim().Generation,
		Manifest: state.Manifest, Counts: count(cells), Missing: missing(cells),
		Findings: merged.Stay, Withdrawn: merged.Withdrawn,
		Tasks: tasks, Attempts: attempts, Spend: spend(attempts, cells), At: f.cfg.Clock.Now(),
	}
	r.Status, r.Reason = verdict(d, job, state, r)
	return r, merged, feed, nil
}

// end stores the result under its own key and names it in the write that ends the job.
func (f *Finalizer) end(ctx context.Context, claim pipeline.Claim, job pipeline.Job, r pipeline.Result) error {
	next := job
	next.Status, next.Reason, next.EndedAt = r.Status, r.Reason, r.At
	next.Result = pipeline.ResultKey(job.ID, job.Epoch, claim.Generation)
	r.Job = next
	if err := f.cfg.Blobs.PutBlob(ctx, next.Result, pipeline.Encode(r)); err != nil {
		return fmt.Errorf("store the result: %w", err)
	}
	_, err := f.cfg.Store.SetJob(ctx, job, next)
	if errors.Is(err, pipeline.ErrFenced) {
		return errMoved
	}
	if err != nil {
		return fmt.Errorf("end the job: %w", err)
	}
	return nil
}

// over accepts the finalize's one stage: the job needs no more of it. Only now, since an accepted stage is never done
// again, and a job must not be left without its end.
func (f *Finalizer) over(ctx context.Context, a pipeline.Attempt, why string) pipeline.Ending {
	if a.Claim().Accepted >= 1 {
		return pipeline.Ending{Outcome: pipeline.Succeeded}
	}
	if err := a.Checkpoint(ctx, 1, pipeline.Encode(map[string]string{"decided": why})); err != nil {
		return ending(ctx, a, fmt.Errorf("accept the finalize: %w", err))
	}
	return pipeline.Ending{Outcome: pipeline.Succeeded}
}

// poison calls Kill for a document that asks for it.
func (f *Finalizer) poison(ctx context.Context, m pipeline.Manifest) error {
	if f.cfg.Kill == nil || m.Document == "" {
		return nil
	}
	text, err := f.cfg.Blobs.Blob(ctx, pipeline.DocumentKey(m.Document))
	if err != nil {
		return fmt.Errorf("read the text: %w", err)
	}
	if bytes.Contains(text, []byte(PoisonMarker)) {
		f.cfg.Kill()
	}
	return nil
}

// ending is what an error comes to. Waiting for a task, or losing a race, is no fault of the finalize.
func ending(ctx context.Context, a pipeline.Attempt, err error) pipeline.Ending {
	switch {
	case errors.Is(err, errNotEnded), errors.Is(err, errMoved):
		return pipeline.Ending{Outcome: pipeline.Deferral, Failure: pipeline.Fail(pipeline.Busy, "%v", err)}
	case errors.Is(err, errCorrupt), errors.Is(err, pipeline.ErrNotFound), errors.Is(err, pipeline.ErrTooLarge):
		return pipeline.EndingOf(pipeline.Fail(pipeline.Broken, "%v", err), 0)
	case ctx.Err() != nil:
		return pipeline.EndingOf(pipeline.StopFailure(context.Cause(ctx), a.Job()), 0)
	default:
		return pipeline.EndingOf(pipeline.StopFailure(err, a.Job()), 0)
	}
}
