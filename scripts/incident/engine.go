package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

// engine is Holdfast over the store in memory, for worlds in virtual time: a desk to submit at, and worker processes
// that can be killed.
type engine struct {
	*testing.T
	ctx    context.Context
	clock  pipeline.RealClock
	policy pipeline.Policy
	back   *wiring.Backend
	desk   *wiring.System
	sweep  time.Duration // how often each process reaps
}

func newEngine(t *testing.T, ctx context.Context, policy pipeline.Policy, model pipeline.Model) *engine {
	e := &engine{T: t, ctx: ctx, clock: pipeline.NewRealClock(), policy: policy, sweep: time.Second}
	e.must(policy.Validate())
	e.back = wiring.InMemory(e.policy, e.clock)
	e.desk = wiring.New(e.back, wiring.Config{Tenant: "incident", Worker: "desk", Policy: e.policy, Clock: e.clock, Model: model})
	return e
}

func (e *engine) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *engine) job(id pipeline.JobID) pipeline.Job {
	e.Helper()
	job, err := e.back.Store.Job(e.ctx, id)
	e.must(err)
	return job
}

// begins starts a held job once it is split, and returns its plan: what a person sees before anything is spent.
func (e *engine) begins(id pipeline.JobID) pipeline.Plan {
	e.Helper()
	for {
		if e.task(pipeline.Ref{Job: id, ID: pipeline.SplitTask}).Status.Ended() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	plan, err := e.desk.Submitter.Plan(e.ctx, id)
	e.must(err)
	_, err = e.desk.Submitter.Start(e.ctx, id)
	e.must(err)
	return plan
}

func (e *engine) task(ref pipeline.Ref) pipeline.Task {
	e.Helper()
	row, err := e.back.Store.Task(e.ctx, ref)
	e.must(err)
	return row
}

// ends lets time pass until the job has ended.
func (e *engine) ends(id pipeline.JobID) pipeline.Job {
	e.Helper()
	for begin := e.clock.Mono(); ; time.Sleep(time.Second) {
		job := e.job(id)
		if job.Status.Ended() {
			return job
		}
		if e.clock.Mono()-begin > 2*e.policy.JobDeadline {
			e.Fatalf("job %s is still %s after twice its deadline", id, job.Status)
		}
	}
}

func (e *engine) result(job pipeline.Job) pipeline.Result {
	e.Helper()
	body, err := e.back.Blobs.Blob(e.ctx, job.Result)
	e.must(err)
	result, err := pipeline.Decode[pipeline.Result](body, "result")
	e.must(err)
	return result
}

// quiet lets time pass until the queues hold nothing; bells that were rung meanwhile are still to be looked at.
func (e *engine) quiet(within time.Duration) bool {
	e.Helper()
	for begin := e.clock.Mono(); e.depth() > 0; time.Sleep(time.Second) {
		if e.clock.Mono()-begin > within {
			return false
		}
	}
	return true
}

// depth is what the queues hold.
func (e *engine) depth() int {
	e.Helper()
	return depth(e.T, e.desk)
}

// process is a worker process: after kill, none of its calls of a port or of the model gets through any more.
type process struct {
	drain, drop context.CancelFunc
	done        chan struct{}
	mu          sync.Mutex
	dead        bool
}

// start starts one.
func (e *engine) start(name string, cfg wiring.Config) *process {
	p := &process{done: make(chan struct{})}
	back := &wiring.Backend{
		Store: pipelinetest.Wrap(e.back.Store, p.stand), Blobs: pipelinetest.WrapBlobs(e.back.Blobs, p.stand),
		Queues: pipeline.Queues{
			Control: pipelinetest.WrapQueue(e.back.Queues.Control, p.stand),
			Work:    pipelinetest.WrapQueue(e.back.Queues.Work, p.stand),
		},
	}
	made := 0
	cfg.Tenant, cfg.Worker, cfg.Policy, cfg.Clock = "incident", name, e.policy, e.clock
	cfg.Read = ingest.New(ingest.Config{Clock: e.clock}).Read
	cfg.NewID = func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		made++
		return fmt.Sprintf("%s-%d", name, made)
	}
	system := wiring.New(back, cfg)
	ctx, drop := context.WithCancel(e.ctx)
	drain, begin := context.WithCancel(ctx)
	p.drop, p.drain = drop, begin
	worker := system.Worker()
	go func() {
		defer close(p.done)
		var group pipeline.Group
		group.Go(func() { worker.Run(ctx, drain) })
		group.Go(func() { system.Reaper.Run(drain, e.sweep) })
		group.Wait()
	}()
	return p
}

func (p *process) stand(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error {
	if p.killed() {
		return pipelinetest.ErrKilled
	}
	return do(ctx)
}

func (p *process) killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// kill is SIGKILL: nothing is released, nothing ended, nothing written.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.drain()
	p.drop()
	<-p.done
}
