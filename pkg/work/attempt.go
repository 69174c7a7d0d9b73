package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// attempt is one claim's work on a task. It implements [pipeline.Attempt].
type attempt struct {
	w       *Worker
	reading *reading
	drain   context.Context

	mu       sync.Mutex
	claim    pipeline.Claim
	wall     pipeline.Instant // the claim may be trusted until then, by either clock
	mono     time.Duration
	stop     error         // the first reason why no try may be sent any more
	stopped  chan struct{} // closed with it
	used     int           // tries taken, of the task's life: what Allowed becomes when the attempt ends
	began    int           // what it was when the claim began
	answers  int
	progress time.Duration // when something was last achieved
	stage    int
	stageAt  pipeline.Instant
	journal  journal

	renewal chan struct{} // held by the one renewal at a time; no mutex, since a renewal may wait
}

func newAttempt(w *Worker, c *claimed, r *reading, drain context.Context) *attempt {
	return &attempt{
		w: w, reading: r, drain: drain,
		claim: c.Claim, wall: c.wall, mono: c.mono,
		renewal: make(chan struct{}, 1), stopped: make(chan struct{}), used: c.Allowed, began: c.Allowed, progress: w.clock.Mono(),
		stage: c.Accepted + 1, stageAt: w.clock.Now(),
		journal: journal{task: c.ID, generation: c.Generation, worker: w.cfg.Worker},
	}
}

// Claim is the claim as it stands.
func (a *attempt) Claim() pipeline.Claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.claim
}

// Job is the job's row as last read.
func (a *attempt) Job() pipeline.Job {
	job, _, _ := a.reading.last()
	return job
}

// Worker is who works on it.
func (a *attempt) Worker() string { return a.w.cfg.Worker }

// Last says that a failure now uses up the last attempt.
func (a *attempt) Last() bool { return a.Claim().Attempts >= a.w.cfg.Policy.MaxAttempts }

// Answered says that a new answer was stored.
func (a *attempt) Answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers++
	a.progress = a.w.clock.Mono()
}

// Progress says that the work goes on.
func (a *attempt) Progress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress = a.w.clock.Mono()
}

// Record puts a try into the journal. A try that came back, however it ended, is progress.
func (a *attempt) Record(t pipeline.Try) {
	a.mu.Lock()
	a.journal.add(t)
	a.progress = a.w.clock.Mono()
	a.mu.Unlock()
	a.w.cfg.Observe(Event{What: "try", Job: a.claim.Job, Task: a.claim.ID, Worker: a.Worker(), Kind: t.Failure.Kind, Cost: t.Cost})
}

// Unsent gives a try back.
func (a *attempt) Unsent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used--
}

// halt sets the reason why no try may be sent any more; the first one counts.
func (a *attempt) halt(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil {
		a.stop = why
		close(a.stopped)
	}
}

// Stopped is closed once MaySend refuses for good.
func (a *attempt) Stopped() <-chan struct{} { return a.stopped }

// Stop is why MaySend refuses for good; nil if it does not.
func (a *attempt) Stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stop
}

// MaySend takes one of the tries that were allowed.
func (a *attempt) MaySend(ctx context.Context) error {
	for {
		if err := a.ready(ctx); err != nil {
			return err
		}
		if a.takeTry() {
			err := a.readyNow()
			if err == nil || errors.Is(err, pipeline.ErrTriesUsed) { // others found none left; this one is taken
				return nil
			}
			a.Unsent() // something changed while the block was written: look at all of it again
			continue
		}
		if err := a.allowBlock(ctx); err != nil {
			return err
		}
	}
}

func (a *attempt) takeTry() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used >= a.claim.Allowed {
		return false
	}
	a.used++
	a.progress = a.w.clock.Mono() // tries are numbered, and each ends within its time
	return true
}

// errStale says that the job was last read too long ago: the next reading decides.
var errStale = errors.New("the last reading of the job is too old")

// ready waits until a try may be sent as far as job and claim are concerned.
func (a *attempt) ready(ctx context.Context) error {
	for {
		_, _, changed := a.reading.last()
		err := a.readyNow()
		if !errors.Is(err, errStale) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-a.stopped:
		case <-changed:
		}
	}
}

// readyNow says whether a try may be sent now: nothing stopped the attempt, the claim is ours by both clocks, and a
// reading of the job that is fresh enough says that it runs.
func (a *attempt) readyNow() error {
	p, now, mono := a.w.cfg.Policy, a.w.clock.Now(), a.w.clock.Mono()
	job, began, _ := a.reading.last()
	if err := jobStops(job, a.claim.ID.Kind(), now); err != nil {
		a.halt(err)
	}
	if a.drain.Err() != nil {
		a.halt(pipeline.ErrDraining)
	}
	a.mu.Lock()
	margin := p.OwnMargin()
	lapsed := now > a.wall.Add(-margin) || mono > a.mono-margin
	a.mu.Unlock()
	if lapsed {
		a.halt(pipeline.ErrClaimLost)
	}
	if err := a.Stop(); err != nil {
		return err
	}
	if mono-began >= p.JobFresh {
		return errStale
	}
	return nil
}

// jobStops is why a task of that kind may not go on while the job stands so; nil if it may.
func jobStops(job pipeline.Job, kind pipeline.TaskKind, now pipeline.Instant) error {
	switch {
	case kind == pipeline.TaskFinalize:
		return nil // it decides the job's end itself, under epoch and status
	case job.Status == pipeline.JobCancelling || job.Status.Ended() || job.Expired(now):
		return pipeline.ErrCancelled
	case !job.Runs(kind):
		return pipeline.ErrPaused
	}
	return nil
}

// allowBlock writes that another block of tries is allowed, by an early renewal.
func (a *attempt) allowBlock(ctx context.Context) error {
	if err := a.renewing(ctx); err != nil {
		return err
	}
	defer func() { <-a.renewal }()
	a.mu.Lock()
	allowed, used, limit := a.claim.Allowed, a.used, a.claim.MaxTries
	a.mu.Unlock()
	if used < allowed {
		return nil // another call got a block meanwhile
	}
	if allowed >= limit {
		err := a.triesUsed(ctx, limit)
		a.halt(err)
		return err
	}
	return a.renewTo(ctx, min(allowed+a.block(), limit))
}

// block is how many tries one write allows the task.
func (a *attempt) block() int {
	p := a.w.cfg.Policy
	return p.Block(a.claim.MaxTries / p.TriesPerCell())
}

// Fence asks the store whether the claim is still ours.
func (a *attempt) Fence(ctx context.Context) error {
	row, err := a.w.cfg.Store.Task(ctx, a.claim.Ref)
	if err != nil {
		return err
	}
	c := a.Claim()
	if !holds(&row, c.Fence()) {
		a.halt(pipeline.ErrClaimLost)
		return fmt.Errorf("%s: %w", c.Ref, pipeline.ErrFenced)
	}
	return nil
}

// Checkpoint stores the body of a stage and accepts it.
func (a *attempt) Checkpoint(ctx context.Context, stage int, body []byte) error {
	c := a.Claim()
	store := a.w.cfg.Store
	if err := a.w.persist(ctx, func() error {
		return store.PutItem(ctx, c.Job, pipeline.BodyKey(c.ID, stage, c.Generation), body)
	}); err != nil {
		return fmt.Errorf("store the body of stage %d of %s: %w", stage, c.Ref, err)
	}
	row, err := a.accept(ctx, stage)
	if err != nil {
		if errors.Is(err, pipeline.ErrFenced) {
			a.halt(pipeline.ErrClaimLost)
		}
		return fmt.Errorf("accept stage %d of %s: %w", stage, c.Ref, err)
	}
	a.mu.Lock()
	a.claim.Accepted, a.claim.Bodies = row.Accepted, row.Bodies
	a.claim.Attempts, a.claim.Losses = 1, 0
	a.claim.Allowed = max(a.claim.Allowed, row.Allowed)
	a.stage, a.stageAt = stage+1, a.w.clock.Now()
	a.progress = a.w.clock.Mono()
	a.mu.Unlock()
	a.w.cfg.Observe(Event{What: "stage", Job: c.Job, Task: c.ID, Worker: a.Worker(), Stage: stage, N: cellsIn(body)})
	return nil
}

// cellsIn is how many cells a stage's body ends; none in what is no such body.
func cellsIn(body []byte) int {
	b, err := pipeline.Decode[pipeline.StageBody](body, "stage body")
	if err != nil {
		return 0
	}
	return len(b.Cells)
}

// accept sends the acceptance, the same again while the store is busy. Refused, with our own generation at that
// stage: it landed. Refused, but still ours with more tries allowed: a renewal landed whose answer was lost.
func (a *attempt) accept(ctx context.Context, stage int) (pipeline.Task, error) {
	a.mu.Lock()
	write := pipeline.CheckpointWrite{Fence: a.claim.Fence(), Stage: stage, Allowed: a.claim.Allowed}
	if stage < a.claim.Stages && a.claim.MaxTries > 0 { // the next stage's first block, without a write of its own
		write.Allowed = max(write.Allowed, min(a.used+a.block(), a.claim.MaxTries))
	}
	a.mu.Unlock()
	var row pipeline.Task
	err := a.w.persist(ctx, func() error {
		var err error
		row, err = a.w.cfg.Store.Checkpoint(ctx, write)
		old, refused := pipeline.Old(err)
		switch {
		case !refused || old == nil:
		case old.Body(stage) == write.Generation:
			row, err = *old, nil
		case holds(old, write.Fence) && old.Accepted == stage-1 && old.Allowed > write.Allowed:
			write.Allowed = old.Allowed
			err = pipeline.ErrBusy
		}
		return err
	})
	return row, err
}

// persist does a write, the same again a bounded number of times while the store is busy.
func (w *Worker) persist(ctx context.Context, write func() error) error {
	return w.persistFor(ctx, storeTries, write)
}

func (w *Worker) persistFor(ctx context.Context, tries int, write func() error) error {
	var err error
	for n := range tries {
		if n > 0 {
			if sleep := w.clock.Sleep(ctx, w.cfg.Policy.RenewEvery/50<<(n-1)); sleep != nil {
				return errors.Join(err, sleep)
			}
		}
		err = write()
		if err == nil || (!errors.Is(err, pipeline.ErrBusy) && !errors.Is(err, pipeline.ErrConflict)) {
			return err
		}
	}
	return err
}
