// Package reap finds what stalled and moves it on: claims that lapsed, rows that nobody was told of, endings that
// were not written, jobs whose finalize was not opened.
//
// It may decide nothing about giving up: what becomes of a lapsed claim or an exhausted row is [pipeline.Next]. It
// never looks at when something started, only at expiry, and every write of its carries the row as it was seen.
package reap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// Store is what the reaper asks of the store.
type Store interface {
	pipeline.Reaping
	pipeline.Items
	Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error)
	OpenJobs(ctx context.Context, cursor string) (jobs []pipeline.Job, next string, err error)
	Task(ctx context.Context, ref pipeline.Ref) (pipeline.Task, error)
	Tasks(ctx context.Context, job pipeline.JobID, cursor string) (rows []pipeline.Task, next string, err error)
	Budget(ctx context.Context, job pipeline.JobID) (pipeline.Budget, error)
	Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error)
}

// Opener opens the finalize of a job whose tasks have all ended.
type Opener interface {
	MaybeFinalize(ctx context.Context, job pipeline.JobID) error
}

// Config is all that a Reaper needs.
type Config struct {
	Store   Store
	Queues  pipeline.Queues
	Opener  Opener
	Clock   pipeline.Clock
	Policy  pipeline.Policy
	Log     *slog.Logger
	Jitter  func() float64                      // in [0,1)
	Skew    func() time.Duration                // of this process's clock against the store's; nil = the same clock
	Within  time.Duration                       // the time of one sweep; it goes on next time where it stopped
	Observe func(row pipeline.Task, did string) // told of every row that was moved, for progress; may be nil
	// Release makes visible the deliveries that an exited worker of this machine took and did nothing with; nil where
	// nobody can tell: then the row is rung again at its time.
	Release func(ctx context.Context, worker string) error
	Keeper  Keeper // nil where all is kept
	// KeepReplies reads every reply that a job has, which gives each its time again; needed with a Keeper.
	KeepReplies func(ctx context.Context, job pipeline.Job) error
}

// Reaper sweeps. Several may sweep at once: each row's move is one conditional write.
type Reaper struct {
	cfg Config

	mu      sync.Mutex
	sweeps  int
	cursors [pipeline.DueShards]cursor
	jobs    jobsCursor
	many    int                              // jobs were open at the last look at all of them
	looked  map[pipeline.JobID]time.Duration // when a job was last looked at whole, by the monotonic clock
	bad     map[pipeline.Ref]int             // rows that errored, and how often
	marking time.Duration                    // when what ended jobs left was looked at last, by the monotonic clock; 0 = never
	kept    map[pipeline.JobID]int           // how often the replies of an open job were kept
}

// cursor is where a shard's sweep stopped: the page, and the last row of it that was looked at.
type cursor struct {
	page string
	row  pipeline.Ref
}

// jobsCursor is the same for the open jobs; seen is how many there were before it.
type jobsCursor struct {
	page string
	job  pipeline.JobID
	seen int
}

// New is a Reaper.
func New(cfg Config) *Reaper {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	if cfg.Within == 0 {
		cfg.Within = 30 * time.Second
	}
	if cfg.Observe == nil {
		cfg.Observe = func(pipeline.Task, string) {}
	}
	return &Reaper{cfg: cfg, looked: map[pipeline.JobID]time.Duration{}, bad: map[pipeline.Ref]int{}, kept: map[pipeline.JobID]int{}}
}

// Report is what one sweep did, by what it was.
type Report map[string]int

// Run sweeps every interval until ctx is done.
func (r *Reaper) Run(ctx context.Context, every time.Duration) {
	for r.cfg.Clock.Sleep(ctx, every) == nil {
		if _, err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "sweep failed", "error", err)
		}
	}
}

// Sweep looks at every row that is due and at every open job, within its time. A row that errors does not stop it.
func (r *Reaper) Sweep(ctx context.Context) (Report, error) { return r.SweepWithin(ctx, r.cfg.Within) }

// SweepWithin is Sweep with another time than the configured one. What it does not get to, the next sweep does.
func (r *Reaper) SweepWithin(ctx context.Context, within time.Duration) (Report, error) {
	report := Report{}
	if r.cfg.Skew != nil && r.cfg.Skew().Abs() > r.cfg.Policy.MaxSkew/2 {
		return report, fmt.Errorf("this clock differs from the store's by %v, more than %v: nothing is expired or rung", r.cfg.Skew(), r.cfg.Policy.MaxSkew/2)
	}
	var errs []error
	begin, share := r.cfg.Clock.Mono(), within/(pipeline.DueShards+1)
	first := r.first()
	for n := range pipeline.DueShards { // each has its share of the time: none starves those after it
		shard := (first + n) % pipeline.DueShards
		if err := r.shard(ctx, shard, begin+share*time.Duration(n+1), report); err != nil {
			errs = append(errs, fmt.Errorf("sweep shard %d: %w", shard, err))
		}
	}
	if err := r.openJobs(ctx, begin+within, report); err != nil {
		errs = append(errs, fmt.Errorf("sweep the open jobs: %w", err))
	}
	if err := r.markEnded(ctx, begin+within, report); err != nil {
		errs = append(errs, fmt.Errorf("mark what ended jobs left: %w", err))
	}
	return report, errors.Join(errs...)
}

// first is the shard that a sweep begins with: another one than the last, so that none is always the one for which the
// time is over, and another one than those of others who sweep at once.
func (r *Reaper) first() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweeps++
	return (r.sweeps + int(r.cfg.Jitter()*pipeline.DueShards)) % pipeline.DueShards
}

func (r *Reaper) shard(ctx context.Context, shard int, end time.Duration, report Report) error {
	jobs, crowded := map[pipeline.JobID]standing{}, false
	r.mu.Lock()
	at := r.cursors[shard]
	r.mu.Unlock()
	for r.cfg.Clock.Mono() < end {
		rows, next, err := r.cfg.Store.Due(ctx, shard, r.cfg.Clock.Now(), at.page)
		if err != nil {
			r.stopAt(shard, cursor{})
			return err
		}
		others, over := r.page(ctx, shard, after(rows, at.row), &at, end, jobs, report)
		switch {
		case over || others && crowded:
			return nil // for this time, or the others will see to it
		case others:
			crowded = true
			continue
		}
		at = cursor{page: next}
		r.stopAt(shard, at)
		if next == "" {
			return nil
		}
	}
	return nil
}

func (r *Reaper) stopAt(shard int, at cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursors[shard] = at
}

// after is the rows behind the one that was looked at last; all of them once that one has been moved.
func after(rows []pipeline.Task, last pipeline.Ref) []pipeline.Task {
	return rows[1+slices.IndexFunc(rows, func(row pipeline.Task) bool { return row.Ref == last }):]
}

// crowd is how many rows in a row others may have moved before their page is read again: they are at work on it. The
// second time its shard is left to them until the next sweep.
const crowd = 3

// page moves the rows of a page, and at with them. crowded says that others move them too, and that what was read of the
// rest is old; over that the time is.
func (r *Reaper) page(ctx context.Context, shard int, rows []pipeline.Task, at *cursor, end time.Duration, jobs map[pipeline.JobID]standing, report Report) (crowded, over bool) {
	moved := 0
	for _, row := range rows {
		if r.cfg.Clock.Mono() >= end {
			return false, true
		}
		if moved++; !r.row(ctx, row, jobs, report) {
			moved = 0
		}
		at.row = row.Ref
		r.stopAt(shard, *at)
		if moved == crowd {
			return true, false
		}
	}
	return false, false
}

// row moves one row and keeps what went wrong from stopping the sweep. moved says that somebody else moved it meanwhile.
func (r *Reaper) row(ctx context.Context, row pipeline.Task, jobs map[pipeline.JobID]standing, report Report) (moved bool) {
	var did string
	err := guard(func() (err error) {
		did, err = r.step(ctx, row, jobs)
		return err
	})
	switch {
	case err == nil:
		r.mu.Lock()
		delete(r.bad, row.Ref)
		r.mu.Unlock()
		if did != "" {
			report[did]++
		}
		if did != "" && did != expired { // Expire has told it
			r.cfg.Observe(row, did)
		}
	case errors.Is(err, pipeline.ErrFenced):
		report["moved meanwhile"]++
		return true
	case ctx.Err() != nil:
	default:
		report["errors"]++
		r.cfg.Log.WarnContext(ctx, "row could not be moved on", "task", row.Ref.String(), "error", err)
		r.putOff(ctx, row)
	}
	return false
}

// guard does something for one row or job. Its panic is its error: one that nobody can look at without a bug must not
// keep the sweeps, and the process that makes them beside its work, from all others.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v, in %s", p, pipeline.Place())
		}
	}()
	return do()
}

// putOff moves a row's due time on, doubling, so that it neither stops the sweep nor is forgotten.
func (r *Reaper) putOff(ctx context.Context, row pipeline.Task) {
	r.mu.Lock()
	if len(r.bad) > lookedRoom { // others have moved them on since
		clear(r.bad)
	}
	r.bad[row.Ref]++
	n := r.bad[row.Ref]
	r.mu.Unlock()
	due := r.cfg.Clock.Now().Add(r.cfg.Policy.RingWait(n - 1))
	if _, err := r.cfg.Store.Postpone(ctx, row, due); err != nil {
		r.cfg.Log.WarnContext(ctx, "row could not be put off", "task", row.Ref.String(), "error", err)
	}
}
