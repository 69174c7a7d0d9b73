package reap_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/reap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const theJob pipeline.JobID = "0123456789-1"

var chunk0 = pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(0)}

// bench is a reaper over a store with one running job whose split is done.
type bench struct {
	*testing.T
	ctx           context.Context
	store         *memory.Store
	control, work *memory.Queue
	clock         *pipelinetest.Clock
	policy        pipeline.Policy
	cfg           reap.Config
	*reap.Reaper

	mu        sync.Mutex
	finalized int
	looked    map[pipeline.JobID]bool
	openErr   error
}

func in(t *testing.T, name string, test func(b *bench), edits ...func(b *bench)) {
	t.Run(name, func(t *testing.T) {
		b := &bench{T: t, ctx: t.Context(), store: memory.New(), clock: pipelinetest.NewClock(), policy: pipeline.DefaultPolicy()}
		queue := memory.QueueConfig{Visibility: time.Minute, MaxReceives: 5, Now: b.clock.Now}
		b.control, b.work = memory.NewQueue(queue), memory.NewQueue(queue)
		b.cfg = reap.Config{
			Store: b.store, Queues: pipeline.Queues{Control: b.control, Work: b.work}, Opener: b, Clock: b.clock, Policy: b.policy,
			Jitter: func() float64 { return 0 },
		}
		for _, edit := range edits {
			edit(b)
		}
		b.Reaper = reap.New(b.cfg)
		split := pipelinetest.NewRow(theJob, pipeline.SplitTask, func(t *pipeline.Task) { t.Status, t.Stages, t.Accepted = pipeline.TaskDone, 1, 1 })
		_, _, err := b.store.Submit(b.ctx, pipelinetest.NewJob(theJob), split)
		b.must(err)
		test(b)
	})
}

// ports puts something before the reaper's store.
func (b *bench) ports(around pipelinetest.Around) { b.cfg.Store = pipelinetest.Wrap(b.store, around) }

func (b *bench) MaybeFinalize(_ context.Context, job pipeline.JobID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looked == nil {
		b.looked = map[pipeline.JobID]bool{}
	}
	b.looked[job] = true
	b.finalized++
	return b.openErr
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) row(n int, edits ...func(*pipeline.Task)) pipeline.Task {
	b.Helper()
	return b.put(pipelinetest.NewRow(theJob, pipeline.WorkTask(n), edits...))
}

func (b *bench) put(row pipeline.Task) pipeline.Task {
	b.Helper()
	_, err := b.store.PutTasks(b.ctx, []pipeline.Task{row})
	b.must(err)
	return row
}

func (b *bench) claimed(row pipeline.Task, worker string) pipeline.Task {
	b.Helper()
	claimed, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(row, worker, b.clock.Now()))
	b.must(err)
	return claimed
}

func (b *bench) read(ref pipeline.Ref) pipeline.Task {
	b.Helper()
	row, err := b.store.Task(b.ctx, ref)
	b.must(err)
	return row
}

func (b *bench) status(ref pipeline.Ref, want pipeline.TaskStatus) pipeline.Task {
	b.Helper()
	row := b.read(ref)
	if row.Status != want {
		b.Errorf("%s is %s (%s), want %s", ref, row.Status, row.Reason, want)
	}
	return row
}

// sweep lets time pass and sweeps once.
func (b *bench) sweep(after time.Duration) reap.Report {
	b.Helper()
	b.clock.Advance(after)
	report, err := b.Sweep(b.ctx)
	b.must(err)
	return report
}

// every sweeps at this interval for so long.
func (b *bench) every(interval, d time.Duration) {
	b.Helper()
	for range d / interval {
		b.sweep(interval)
	}
}

func (b *bench) job(status pipeline.JobStatus, edits ...func(*pipeline.Job)) {
	b.Helper()
	seen, err := b.store.Job(b.ctx, theJob)
	b.must(err)
	next := seen
	next.Status = status
	for _, edit := range edits {
		edit(&next)
	}
	_, err = b.store.SetJob(b.ctx, seen, next)
	b.must(err)
}

// bells takes every visible message.
func (b *bench) bells(q *memory.Queue) []pipeline.Message {
	b.Helper()
	var messages []pipeline.Message
	for {
		deliveries, err := q.Receive(b.ctx, pipeline.MaxBatch, 0)
		b.must(err)
		if len(deliveries) == 0 {
			return messages
		}
		for _, d := range deliveries {
			m, err := pipeline.DecodeMessage(d.Body)
			b.must(err)
			messages = append(messages, m)
		}
		_, err = q.Delete(b.ctx, deliveries)
		b.must(err)
	}
}

func (b *bench) letters(q *memory.Queue) []pipeline.DeadLetter {
	b.Helper()
	letters, _, err := q.DeadLetters(b.ctx, "")
	b.must(err)
	return letters
}

func (b *bench) records(ref pipeline.Ref) []pipeline.Record {
	b.Helper()
	h, err := pipeline.ReadHistory(b.ctx, b.store, ref)
	b.must(err)
	return b.read(ref).Counting(h.Records)
}

func (b *bench) count(what string, got, want int) {
	b.Helper()
	if got != want {
		b.Errorf("%s: got %d, want %d", what, got, want)
	}
}

func isMissing(err error) bool { return errors.Is(err, pipeline.ErrNotFound) }
