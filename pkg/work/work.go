// Package work is the engine: it takes deliveries, claims their tasks, runs the handler of their kind under the claim,
// and ends the attempt with its reasons. The handler of chunks, which runs the stages of a definition, is here too.
//
// It may decide: what becomes of a delivery (the table in deliver.go), when a try may be sent, when to stop renewing.
// It may not decide when a task is given up: that is [pipeline.Next], and nothing here ends a row because of a message.
package work

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// Store is what the engine asks of the store.
type Store interface {
	pipeline.Tasks
	pipeline.Items
	Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error)
	Ring(ctx context.Context, w pipeline.RingWrite) (pipeline.Task, error)
}

// Reaper is what the engine asks of the reaper: the same step on a row that a sweep would do.
type Reaper interface {
	// Expire takes a lapsed claim away and returns the row as it is then.
	Expire(ctx context.Context, row pipeline.Task, at pipeline.Instant) (pipeline.Task, error)
	// Exhaust applies Next to a pending row whose attempts are used up.
	Exhaust(ctx context.Context, row pipeline.Task) error
	// Bury sends an abandoned row's dead letter and marks it.
	Bury(ctx context.Context, row pipeline.Task) error
}

// Opener opens the finalize of a job whose tasks have all ended.
type Opener interface {
	MaybeFinalize(ctx context.Context, job pipeline.JobID) error
}

// Source is a queue and how many claims on its tasks this worker may hold at once.
type Source struct {
	Name  string
	Queue pipeline.Queue
	Slots int
	Batch int // deliveries taken at once; more saves requests, fewer shares the tasks evenly among workers; 0 = 10
	// Door waits until a task may be received at all, e.g. for the model's breaker; nil = always open.
	Door func(ctx context.Context) error
}

// Config is all that a worker needs.
type Config struct {
	Worker   string // unique to this process
	Store    Store
	Sources  []Source
	Handlers map[pipeline.TaskKind]pipeline.Handler
	Reaper   Reaper
	Opener   Opener
	Clock    pipeline.Clock
	Policy   pipeline.Policy
	Log      *slog.Logger
	Poll     time.Duration          // how long a Receive waits
	Grace    time.Duration          // how long calls in flight may finish after a drain began
	NewID    func() string          // claim ids: random
	Jitter   func() float64         // in [0,1)
	Skew     func() time.Duration   // of this worker's clock against the store's; nil = the same clock
	Observe  func(Event)            // told of what happens, for progress; may be nil
	Busy     func(bool)             // told when the first delivery is worked on, and when none is any more; may be nil
	Stuck    func(ref pipeline.Ref) // a handler ignores that its work is dropped: nothing but the end of the process helps
	Gone     func(err error)        // a queue is not there any more and nothing can arrive; the worker still asks; may be nil
}

// Event is something that happened, for progress displays. It is no record: records are in the store.
type Event struct {
	What    string              `json:"what"` // claim, try, answer, reuse, stage, end, expired
	Job     pipeline.JobID      `json:"job,omitempty"`
	Task    pipeline.TaskID     `json:"task,omitempty"`
	Worker  string              `json:"worker,omitempty"`
	Stage   int                 `json:"stage,omitempty"`
	Kind    pipeline.Kind       `json:"kind,omitempty"`
	Status  pipeline.TaskStatus `json:"status,omitempty"`
	Outcome pipeline.Outcome    `json:"outcome,omitempty"`
	Cost    pipeline.Money      `json:"cost,omitempty"`
	N       int                 `json:"n,omitempty"` // of a claim: the attempt; of a stage: its cells
}

// Worker takes tasks until it is told to stop.
type Worker struct {
	cfg   Config
	crew  *crew
	jobs  *jobs
	clock pipeline.Clock
	sizes *sizes
	load  *load
	fed   bool // deliveries are handed over, not received: see Batch
}

// load counts the deliveries that are worked on.
type load struct {
	tell func(busy bool)

	mu sync.Mutex
	n  int
}

func (l *load) change(by int) {
	if l.tell == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.n
	l.n += by
	if (was == 0) != (l.n == 0) {
		l.tell(l.n > 0)
	}
}

// New is a worker that has not started.
func New(cfg Config) *Worker {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Gone == nil {
		cfg.Gone = func(error) {}
	}
	if cfg.Stuck == nil {
		cfg.Stuck = func(pipeline.Ref) {}
	}
	w := &Worker{cfg: cfg, clock: cfg.Clock, load: &load{tell: cfg.Busy}}
	w.crew = newCrew(cfg.Sources)
	w.sizes = &sizes{store: cfg.Store, clock: cfg.Clock, policy: cfg.Policy}
	w.jobs = newJobs(cfg.Store, cfg.Clock, cfg.Policy, cfg.Log)
	return w
}

// Run works until drain is done, then lets calls in flight finish for Grace, releases its claims as deferrals and
// returns. When ctx is done everything is dropped at once.
func (w *Worker) Run(ctx, drain context.Context) {
	hard, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	drain, stop := context.WithCancel(drain)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // what is dropped is shutting down too
	w.jobs.drain = drain
	var group pipeline.Group
	for i := range w.cfg.Sources {
		group.Go(func() { w.poll(hard, drain, i, &group) })
	}
	finished := make(chan struct{})
	var watch pipeline.Group
	watch.Go(func() { w.graceOver(ctx, drain, finished, drop) })
	group.Wait()
	close(finished)
	watch.Wait()
	w.jobs.wait()
}

// graceOver drops what is still in flight when the grace after a drain is over.
func (w *Worker) graceOver(ctx, drain context.Context, finished <-chan struct{}, drop context.CancelCauseFunc) {
	select {
	case <-finished:
		return
	case <-drain.Done():
	}
	sleep, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	group.Go(func() {
		select {
		case <-finished:
			stop()
		case <-sleep.Done():
		}
	})
	if w.clock.Sleep(sleep, w.cfg.Grace) == nil {
		drop(pipeline.ErrDraining)
	}
	stop()
	group.Wait()
}

// goneAfter is for how long a queue must not be there before that is told: what was just made may not be known
// everywhere yet.
const goneAfter = 10 * time.Second

// poll receives from one source for as long as there are free slots, each delivery on a goroutine of its own.
func (w *Worker) poll(ctx, drain context.Context, source int, group *pipeline.Group) {
	src := w.cfg.Sources[source]
	there := w.clock.Mono() // when the queue was last known to be there
	for drain.Err() == nil && ctx.Err() == nil {
		if src.Door != nil && src.Door(drain) != nil {
			continue
		}
		n := w.crew.take(drain, source, cmp.Or(src.Batch, pipeline.MaxBatch))
		if n == 0 {
			continue
		}
		deliveries, err := src.Queue.Receive(drain, n, w.cfg.Poll)
		if !errors.Is(err, pipeline.ErrNotMade) {
			there = w.clock.Mono()
		} else if w.clock.Mono()-there >= goneAfter {
			w.cfg.Gone(err)
		}
		if err != nil && drain.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "receive failed", "queue", src.Name, "error", err)
			_ = w.clock.Sleep(drain, w.cfg.Poll) // only the drain ends it early, and the loop looks at that
		}
		for range n - len(deliveries) {
			w.crew.give(source)
		}
		for _, d := range deliveries {
			group.Go(func() {
				defer w.crew.give(source)
				w.deliver(ctx, source, d)
			})
		}
	}
}
