package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/work"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// the job of every test here, and its first chunk.
const theJob pipeline.JobID = "0123456789-1"

var chunk0 = pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(0)}

// bench is a store and two queues in virtual time, with one running job and nobody at work yet.
type bench struct {
	*testing.T
	ctx    context.Context
	store  *memory.Store
	queues pipeline.Queues
	policy pipeline.Policy
	clock  pipeline.RealClock
	hosts  []*host

	mu        sync.Mutex
	finalized []pipeline.JobID
}

// in runs a test in virtual time. Workers that it started are stopped, thawed and waited for at its end.
func in(t *testing.T, name string, test func(b *bench)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			defer b.close()
			test(b)
		})
	})
}

func newBench(t *testing.T) *bench {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	b := &bench{T: t, ctx: ctx, store: memory.New(), policy: pipeline.DefaultPolicy(), clock: pipeline.NewRealClock()}
	queue := func() pipeline.Queue {
		return memory.NewQueue(memory.QueueConfig{Visibility: b.policy.Visibility(), MaxReceives: b.policy.MaxReceives, Now: b.clock.Now})
	}
	b.queues = pipeline.Queues{Control: queue(), Work: queue()}
	b.job(pipeline.JobRunning)
	return b
}

func (b *bench) close() {
	for _, h := range b.hosts {
		h.kill()
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// need is must for handlers: it ends their attempt.
func (b *bench) need(err error) {
	b.Helper()
	if err != nil {
		b.Error(err)
		panic(err)
	}
}

// job puts the job, or changes its status; edits change more.
func (b *bench) job(status pipeline.JobStatus, edits ...func(*pipeline.Job)) {
	b.Helper()
	seen, err := b.store.Job(b.ctx, theJob)
	if errors.Is(err, pipeline.ErrNotFound) {
		now := b.clock.Now()
		job := pipelinetest.NewJob(theJob, func(j *pipeline.Job) {
			j.Status, j.CreatedAt, j.StartedAt, j.Deadline = status, now, now, now.Add(b.policy.JobDeadline)
		})
		split := pipelinetest.NewRow(theJob, pipeline.SplitTask, func(t *pipeline.Task) { t.Status, t.Stages, t.Accepted = pipeline.TaskDone, 1, 1 })
		_, _, err = b.store.Submit(b.ctx, job, split)
		b.must(err)
		return
	}
	b.must(err)
	next := seen
	next.Status = status
	for _, edit := range edits {
		edit(&next)
	}
	_, err = b.store.SetJob(b.ctx, seen, next)
	b.must(err)
}

// row puts a pending row of chunk n that is ready, without ringing it.
func (b *bench) row(n int, edits ...func(*pipeline.Task)) pipeline.Task {
	b.Helper()
	now := b.clock.Now()
	row := pipelinetest.NewRow(theJob, pipeline.WorkTask(n), func(t *pipeline.Task) { t.ReadyAt, t.DueAt = now, now.Add(b.policy.RingDelay) })
	for _, edit := range edits {
		edit(&row)
	}
	_, err := b.store.PutTasks(b.ctx, []pipeline.Task{row})
	b.must(err)
	return row
}

// rung puts a row and rings it.
func (b *bench) rung(n int, edits ...func(*pipeline.Task)) pipeline.Task {
	b.Helper()
	row := b.row(n, edits...)
	b.must(b.queues.Ring(b.ctx, row))
	return row
}

func (b *bench) read(ref pipeline.Ref) pipeline.Task {
	b.Helper()
	row, err := b.store.Task(b.ctx, ref)
	b.must(err)
	return row
}

func (b *bench) history(ref pipeline.Ref) pipeline.History {
	b.Helper()
	h, err := pipeline.ReadHistory(b.ctx, b.store, ref)
	b.must(err)
	return h
}

// last is the last record that counts.
func (b *bench) last(ref pipeline.Ref) pipeline.Record {
	b.Helper()
	records := b.read(ref).Counting(b.history(ref).Records)
	if len(records) == 0 {
		b.Fatalf("%s has no record", ref)
	}
	return records[len(records)-1]
}

func (b *bench) letters(queue pipeline.Queue) []pipeline.DeadLetter {
	b.Helper()
	letters, _, err := queue.DeadLetters(b.ctx, "")
	b.must(err)
	return letters
}

// depth is how many messages the queue of chunks holds.
func (b *bench) depth() (visible, inFlight int) {
	b.Helper()
	visible, inFlight, err := b.queues.Work.Depth(b.ctx)
	b.must(err)
	return visible, inFlight
}

func (b *bench) empty(what string) {
	b.Helper()
	if visible, inFlight := b.depth(); visible+inFlight != 0 {
		b.Errorf("%s: the queue holds %d visible messages and %d in flight, want none", what, visible, inFlight)
	}
}

// status checks where the row stands.
func (b *bench) status(ref pipeline.Ref, want pipeline.TaskStatus) pipeline.Task {
	b.Helper()
	row := b.read(ref)
	if row.Status != want {
		b.Errorf("%s is %s (%s), want %s", ref, row.Status, row.Reason, want)
	}
	return row
}

// until lets time pass until ok, at most for so long.
func (b *bench) until(most time.Duration, what string, ok func() bool) {
	b.Helper()
	for begin := b.clock.Mono(); !ok(); {
		if b.clock.Mono()-begin > most {
			b.Fatalf("after %v still not: %s", most, what)
		}
		b.pass(50 * time.Millisecond)
	}
}

func (b *bench) untilStatus(most time.Duration, ref pipeline.Ref, want pipeline.TaskStatus) {
	b.Helper()
	b.until(most, fmt.Sprintf("%s is %s", ref, want), func() bool { return b.read(ref).Status == want })
}

// pass lets virtual time pass.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) MaybeFinalize(_ context.Context, job pipeline.JobID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finalized = append(b.finalized, job)
	return nil
}

// asked is how often somebody asked whether a job is over.
func (b *bench) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.finalized)
}

// handler is a handler made of a function.
type handler func(ctx context.Context, a pipeline.Attempt) pipeline.Ending

func (h handler) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending { return h(ctx, a) }

// succeeds accepts every stage and is done.
func succeeds(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	for stage := a.Claim().Accepted + 1; stage <= a.Claim().Stages; stage++ {
		if err := a.Checkpoint(ctx, stage, []byte("{}")); err != nil {
			return stopped(a, err)
		}
	}
	return pipeline.Ending{Outcome: pipeline.Succeeded}
}

// stopped is how handlers end when MaySend or a write refused.
func stopped(a pipeline.Attempt, err error) pipeline.Ending {
	return pipeline.EndingOf(work.StopFailure(err, a.Job()), 0)
}

func fails(kind pipeline.Kind) handler {
	return func(context.Context, pipeline.Attempt) pipeline.Ending {
		return pipeline.EndingOf(pipeline.Fail(kind, "the handler says %s", kind), 0)
	}
}

// tries sends n tries of which each takes so long, one after the other, and then succeeds.
func tries(n int, each time.Duration) handler {
	return func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
		for range n {
			if err := a.MaySend(ctx); err != nil {
				return stopped(a, err)
			}
			began := time.Now()
			_ = pipeline.RealClock{}.Sleep(ctx, each)
			a.Record(pipeline.Try{Call: "call", At: pipeline.At(began), Millis: time.Since(began).Milliseconds()})
			a.Answered()
		}
		return succeeds(ctx, a)
	}
}

// stepClock is a clock whose wall can be set.
type stepClock struct {
	pipeline.RealClock
	mu     sync.Mutex
	offset time.Duration
}

func (c *stepClock) Now() pipeline.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.RealClock.Now().Add(c.offset)
}

func (c *stepClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// host is a worker and what stands between it and its ports: it can be frozen, and killed.
type host struct {
	b      *bench
	name   string
	clock  *stepClock
	cfg    work.Config
	around pipelinetest.Around // of a test; may be nil
	worker *work.Worker
	drain  context.CancelFunc
	stop   context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	shut   chan struct{} // open when nil
	dead   bool
	claims int
	events []work.Event
}

// host makes a worker that handles chunks so, and does not start it.
func (b *bench) host(name string, h pipeline.Handler, edits ...func(*host)) *host {
	w := &host{b: b, name: name, clock: &stepClock{RealClock: b.clock}, done: make(chan struct{})}
	store := pipelinetest.Wrap(b.store, w.stand)
	id := 0
	w.cfg = work.Config{
		Worker: name, Store: store, Reaper: fakeReaper{b, store}, Opener: b, Clock: w.clock, Policy: b.policy,
		Sources: []work.Source{
			{Name: "control", Queue: pipelinetest.WrapQueue(b.queues.Control, w.stand), Slots: 2},
			{Name: "work", Queue: pipelinetest.WrapQueue(b.queues.Work, w.stand), Slots: 4},
		},
		Handlers: map[pipeline.TaskKind]pipeline.Handler{pipeline.TaskWork: h, pipeline.TaskSplit: h, pipeline.TaskFinalize: h},
		Grace:    20 * time.Second,
		NewID: func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			id++
			return fmt.Sprintf("%s-%d", name, id)
		},
		Jitter: func() float64 { return 0 },
		Observe: func(e work.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	}
	for _, edit := range edits {
		edit(w)
	}
	b.hosts = append(b.hosts, w)
	return w
}

// start makes a worker and runs it.
func (b *bench) start(name string, h pipeline.Handler, edits ...func(*host)) *host {
	w := b.host(name, h, edits...)
	w.run()
	return w
}

func (h *host) run() {
	h.worker = work.New(h.cfg)
	drain, stopDrain := context.WithCancel(h.b.ctx)
	ctx, stop := context.WithCancel(h.b.ctx)
	h.drain, h.stop = stopDrain, stop
	go func() {
		defer close(h.done)
		h.worker.Run(ctx, drain)
	}()
}

// around lets a test stand before the worker's ports.
func around(f pipelinetest.Around) func(*host) { return func(h *host) { h.around = f } }

func (h *host) stand(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
	for {
		h.mu.Lock()
		shut, dead := h.shut, h.dead
		if op.Name == "Claim" && shut == nil && !dead {
			h.claims++
		}
		h.mu.Unlock()
		if dead {
			return pipelinetest.ErrKilled
		}
		if shut == nil {
			break
		}
		<-shut
	}
	if h.around != nil {
		return h.around(ctx, op, do)
	}
	return do(ctx)
}

// freeze stops the worker at its next port call, and thaw lets it go on.
func (h *host) freeze() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shut = make(chan struct{})
}

func (h *host) thaw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut != nil {
		close(h.shut)
		h.shut = nil
	}
}

// kill ends the worker as SIGKILL does: nothing that it does from now on reaches a port.
func (h *host) kill() {
	h.mu.Lock()
	h.dead = true
	h.mu.Unlock()
	h.thaw()
	if h.worker == nil {
		return
	}
	h.drain()
	h.stop()
	<-h.done
}

// drained asks the worker to stop and waits for it.
func (h *host) drained() {
	h.drain()
	<-h.done
}

// ends are the end events so far.
func (h *host) ends() []work.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.events), func(e work.Event) bool { return e.What != "end" })
}

// fakeReaper does what the engine asks of the reaper.
type fakeReaper struct {
	b     *bench
	store pipeline.Store
}

func (r fakeReaper) Expire(ctx context.Context, row pipeline.Task) (pipeline.Task, error) {
	now := r.b.clock.Now()
	reason := pipeline.Fail(pipeline.Lost, "worker %s died", row.ClaimedBy)
	v := pipeline.Next(r.b.policy, pipeline.StandingOf(row, 0), pipeline.EndingOf(reason, 0), now, 0)
	return r.store.Expire(ctx, pipeline.ExpireWrite{
		Seen: row, Verdict: v, Reason: reason, Now: now, MaxSkew: r.b.policy.MaxSkew, ReadyAt: now.Add(v.Wait), DueAt: v.DueAt(r.b.policy, now),
	})
}

func (r fakeReaper) Exhaust(ctx context.Context, row pipeline.Task) error {
	v := pipeline.Next(r.b.policy, pipeline.StandingOf(row, 0), pipeline.Ending{Outcome: pipeline.FailedNow, Failure: row.Reason}, r.b.clock.Now(), 0)
	_, err := r.store.Close(ctx, pipeline.CloseWrite{Seen: row, Status: v.Status, Reason: row.Reason, Due: r.b.clock.Now()})
	return err
}

func (r fakeReaper) Bury(ctx context.Context, row pipeline.Task) error {
	letter := pipeline.DeadLetter{Body: pipeline.Encode(row.Message()), Job: row.Job, Task: row.ID, Reason: row.Reason}
	if err := r.b.queues.Of(row.ID.Kind()).Bury(ctx, letter); err != nil {
		return err
	}
	return r.store.Buried(ctx, row.Ref, row.Generation)
}

// sweep is one round of a reaper over the rows that are due.
func (b *bench) sweep() {
	b.Helper()
	r := fakeReaper{b, b.store}
	for shard := range pipeline.DueShards {
		rows, _, err := b.store.Due(b.ctx, shard, b.clock.Now(), "")
		b.must(err)
		for _, row := range rows {
			b.must(b.step(r, row))
		}
	}
}

func (b *bench) step(r fakeReaper, row pipeline.Task) error {
	var err error
	now := b.clock.Now()
	switch {
	case row.Status == pipeline.TaskClaimed && row.Expirable(pipeline.ExpireWrite{Now: now, MaxSkew: b.policy.MaxSkew}):
		if row, err = r.Expire(b.ctx, row); err != nil || row.Status != pipeline.TaskPending || row.ReadyAt > now {
			return err
		}
		return b.ring(row)
	case row.Status == pipeline.TaskClaimed:
		_, err = b.store.Postpone(b.ctx, row, now.Add(time.Second))
	case row.Status == pipeline.TaskPending:
		return b.ring(row)
	case row.Status == pipeline.TaskAbandoned:
		return r.Bury(b.ctx, row)
	}
	return err
}

func (b *bench) ring(row pipeline.Task) error {
	rung, err := b.store.Ring(b.ctx, pipeline.RingWrite{Seen: row, Due: b.clock.Now().Add(b.policy.RingWait(row.Rings)), Count: row.Rings + 1})
	if err != nil {
		return err
	}
	return b.queues.Ring(b.ctx, rung)
}

// sweeping sweeps every second for so long.
func (b *bench) sweeping(d time.Duration) {
	b.Helper()
	for end := b.clock.Mono() + d; b.clock.Mono() < end; {
		b.pass(time.Second)
		b.sweep()
	}
}
