package work_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
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
	return pipeline.EndingOf(pipeline.StopFailure(err, a.Job()), 0)
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

// host is a worker and what stands between it and its ports: it can be frozen, and killed.
// host makes a worker that handles chunks so, and does not start it.
// start makes a worker and runs it.
// around lets a test stand before the worker's ports.
// freeze stops the worker at its next port call, and thaw lets it go on.
// kill ends the worker as SIGKILL does: nothing that it does from now on reaches a port.
// drained asks the worker to stop and waits for it.
// ends are the end events so far.
// sweep is one round of a reaper over the rows that are due.
// sweeping sweeps every second for so long.
