package work

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// jobs keeps one reading of each job that this worker works on, taken anew every JobPoll: one consistent read per
// worker and job, however many attempts share it.
type jobs struct {
	store  Store
	clock  pipeline.Clock
	policy pipeline.Policy
	log    *slog.Logger
	drain  context.Context // of the worker

	mu    sync.Mutex
	open  map[pipeline.JobID]*reading
	group pipeline.Group
}

func newJobs(store Store, clock pipeline.Clock, policy pipeline.Policy, log *slog.Logger) *jobs {
	return &jobs{store: store, clock: clock, policy: policy, log: log, open: map[pipeline.JobID]*reading{}, drain: context.Background()}
}

func (j *jobs) wait() { j.group.Wait() }

// reading is the last that is known of a job, and when the read that told it began.
type reading struct {
	mu      sync.Mutex
	job     pipeline.Job
	began   time.Duration // by the monotonic clock
	changed chan struct{} // closed by the next reading
	users   int
	ended   bool // one of them ended its task, and nobody looked since whether the job is over
	stop    context.CancelFunc
}

func (r *reading) last() (job pipeline.Job, began time.Duration, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job, r.began, r.changed
}

// set takes a reading, unless a later one came first.
func (r *reading) set(job pipeline.Job, began time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began < r.began {
		return
	}
	r.job, r.began = job, began
	close(r.changed)
	r.changed = make(chan struct{})
}

// leave ends an attempt's following of its job, after its end was written: ended, if the task has. It says whether to
// look if the job is over: when a task of it ended and this worker has no other attempt of it, which would look later.
type leave func(ended bool) (look bool)

// follow reads the job now and keeps reading it until leave is called.
func (j *jobs) follow(ctx context.Context, id pipeline.JobID) (*reading, leave, error) {
	began := j.clock.Mono()
	job, err := j.store.Job(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.open[id]
	if r == nil {
		r = &reading{job: job, began: began, changed: make(chan struct{})}
		j.open[id] = r
		watch, stop := context.WithCancel(context.WithoutCancel(ctx))
		r.stop = stop
		j.group.Go(func() { j.watch(watch, id, r) })
	} else {
		r.set(job, began)
	}
	r.users++
	return r, func(ended bool) bool { return j.leave(id, r, ended) }, nil
}

func (j *jobs) leave(id pipeline.JobID, r *reading, ended bool) (look bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.ended = r.ended || ended
	r.users--
	if r.users > 0 {
		return false
	}
	delete(j.open, id)
	r.stop()
	return r.ended
}

func (j *jobs) watch(ctx context.Context, id pipeline.JobID, r *reading) {
	for j.clock.Sleep(ctx, j.policy.JobPoll) == nil {
		began := j.clock.Mono()
		job, err := j.store.Job(ctx, id)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // the reading grows old, and MaySend waits for a new one
			j.log.WarnContext(ctx, "read of the job failed", "job", id, "error", err)
		default:
			r.set(job, began)
		}
	}
}
