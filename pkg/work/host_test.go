package work_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/work"
)

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

func (h *host) drained() {
	h.drain()
	<-h.done
}

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

func (r fakeReaper) Expire(ctx context.Context, row pipeline.Task, _ pipeline.Instant) (pipeline.Task, error) {
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
		if row, err = r.Expire(b.ctx, row, now); err != nil || row.Status != pipeline.TaskPending || row.ReadyAt > now {
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

func (b *bench) sweeping(d time.Duration) {
	b.Helper()
	for end := b.clock.Mono() + d; b.clock.Mono() < end; {
		b.pass(time.Second)
		b.sweep()
	}
}
