package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

// role is what a process does.
type role string

const (
	worker role = "worker"
	reaper role = "reaper"
	person role = "person"
)

// process is a worker, a reaper or a person's command: it can be killed, frozen, drained, and has a clock of its own.
type process struct {
	w      *World
	name   string
	role   role
	policy pipeline.Policy
	system *wiring.System
	stop   context.CancelFunc // drops everything
	drain  context.CancelFunc // takes nothing new
	done   chan struct{}      // closed when it has exited

	skew    time.Duration // of its clock; set while nobody runs
	frozen  time.Duration // until then; set while nobody runs
	ill     illness       // set while nobody runs
	drained bool

	mu   sync.Mutex
	dead bool
	ids  int
}

// start makes a process of the tenant's.
func (w *World) start(kind role, policy pipeline.Policy) *process {
	return w.startFor(tenant, kind, policy)
}

// startFor makes a process over the world's backend, with its ports as parking points.
func (w *World) startFor(tenant string, kind role, policy pipeline.Policy) *process {
	w.count[kind]++
	p := &process{w: w, name: fmt.Sprintf("%s-%d", kind, w.count[kind]), role: kind, policy: policy, done: make(chan struct{})}
	p.skew = w.skewOf(p)
	ctx, stop := context.WithCancel(w.ctx)
	drain, stopDrain := context.WithCancel(ctx)
	p.stop, p.drain = stop, stopDrain
	watched := &watched{Store: w.store, w: w, p: p}
	back := &wiring.Backend{
		Store: pipelinetest.Wrap(watched, p.around),
		Blobs: pipelinetest.WrapBlobs(w.store, p.around),
		Queues: pipeline.Queues{
			Control: &queue{p: p, inner: w.control, name: pipeline.ControlQueue},
			Work:    &queue{p: p, inner: w.work, name: pipeline.WorkQueue},
		},
		Skew:  func() time.Duration { return p.skew },
		Close: func() error { return nil },
	}
	p.system = wiring.New(back, wiring.Config{
		Tenant: tenant, Worker: p.name, Policy: policy, Clock: clock{p}, Model: &model{p}, InFlight: w.Spec.inFlight(), Claims: 2,
		Read: ingest.New(ingest.Config{Clock: clock{p}}).Read,
		Poll: w.Spec.poll(), Jitter: w.jitter, NewID: p.newID,
	})
	w.processes = append(w.processes, p)
	switch kind {
	case worker:
		engine := p.system.Worker()
		go p.run(func() { engine.Run(ctx, drain) })
	case reaper:
		go p.run(func() { p.system.Reaper.Run(drain, w.Spec.sweep()) })
	default:
		close(p.done) // each command is a goroutine of its own
	}
	return p
}

func (p *process) run(f func()) {
	defer close(p.done)
	f()
}

// newID is a claim's: unique, and the same in every replay.
func (p *process) newID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids++
	return fmt.Sprintf("%s.%d", p.name, p.ids)
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// gone says why the process goes no further: it is dead, or the context has ended.
func (p *process) gone(ctx context.Context) error {
	if p.isDead() {
		return pipelinetest.ErrKilled
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// kill is SIGKILL: nothing that the process does has an effect from now on.
func (p *process) kill() {
	p.mu.Lock()
	was := p.dead
	p.dead = true
	p.mu.Unlock()
	if was {
		return
	}
	p.stop()
	p.w.sched.drop(p)
	p.w.audit.Died(p.name)
}

// running says that the process has neither died nor exited.
func (p *process) running() bool {
	if p.isDead() {
		return false
	}
	select {
	case <-p.done:
		return p.role == person
	default:
		return true
	}
}

// around is the parking point of the store's and the blobs' calls.
func (p *process) around(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
	return p.park(ctx, &waiter{name: op.Name, on: op.On, write: op.Write}, func(ctx context.Context, _ *waiter) error { return do(ctx) })
}

// park waits for the scheduler, then does what was asked with the fault that was chosen for it.
func (p *process) park(ctx context.Context, x *waiter, do func(context.Context, *waiter) error) error {
	if err := p.gone(ctx); err != nil {
		return err
	}
	x.p = p
	p.w.sched.add(x)
	<-x.wake
	if err := p.gone(ctx); err != nil {
		if !p.isDead() { // every call that is released is one event
			x.fault = ""
			e := p.w.begin(p, x)
			e.Write, e.Note = false, "given up"
			p.w.finish(e)
		}
		return err
	}
	err := p.w.perform(ctx, p, x, do)
	if p.isDead() {
		return pipelinetest.ErrKilled
	}
	return err
}
