package smoke_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/smoke"
	"holdfast/pkg/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const poison = "POISON-KILLS"

// bench is a stack in memory and in virtual time, with workers of its own, and a canary for it.
type bench struct {
	*testing.T
	clock  pipeline.RealClock
	policy pipeline.Policy
	back   *wiring.Backend
	cfg    smoke.Config

	// What is wrong with the stack, if anything is.
	model         pipeline.Model                            // of the stack's workers; nil = the offline one
	store         func(pipeline.Store) pipeline.Store       // the stack's tables, as everybody has them
	work          func(pipeline.Queue) pipeline.Queue       // its work queue
	forget        func(pipeline.Job) error                  // in the place of the removal of a job
	theirs        func(*wiring.Backend) *wiring.Backend     // the backend as the stack's workers have it
	mine          func(*wiring.Backend) *wiring.Backend     // as the canary's processes have it
	without       map[string]bool                           // parts of the stack that do not run: control, work, reaper
	stages, calls int                                       // of the documents' definition
	early         int                                       // so many processes of the canary's come too late
	skew          time.Duration                             // of the canary's clock
	interrupt     func()                                    // a person stops the canary
	stopAfter     time.Duration                             // a person stops the canary then; 0 = nobody does
	before        func(ctx context.Context, b *bench) error // what somebody else does first
}

// scripted is a free model: it answers every question, and dies of the poison.
type scripted struct {
	clock pipeline.Clock
	name  string
	pace  time.Duration
	kill  func()
	asks  func(pipeline.ReplyKey)
	fails error
}

func (s scripted) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{Name: s.name, Version: "1", Free: true, Price: pipeline.Price{Input: 3000, Output: 15000}, ContextTokens: 100_000, MaxOutput: 4000}
}

func (s scripted) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	if s.asks != nil {
		s.asks(r.Key)
	}
	if s.kill != nil && strings.Contains(r.Shared, poison) {
		s.kill()
		return pipeline.Response{}, pipelinetest.ErrKilled
	}
	unlike := 0.5 + float64(crc32.ChecksumIEEE([]byte(r.Key)))/math.MaxUint32 // answers come one by one
	if err := s.clock.Sleep(ctx, time.Duration(unlike*float64(s.pace))); err != nil {
		return pipeline.Response{}, err
	}
	if s.fails != nil {
		return pipeline.Response{}, s.fails
	}
	return pipeline.Response{Text: `{"score": 0.9}`, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: r.InputTokens(), Output: 5}}, nil
}

// text is a document of so many chunks.
func text(chunks int) string {
	var b strings.Builder
	for n := range chunks {
		fmt.Fprintf(&b, "%d. Clause number %d.\n\n", n+1, n+1)
		for line := range 11 {
			fmt.Fprintf(&b, "The party of part %d.%d shall hold the other harmless from all claims that arise of it, in whole or in part.\n", n+1, line)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// in runs a canary over a stack; edits say what is wrong with the stack.
func in(t *testing.T, test func(b *bench, r smoke.Report, err error), edits ...func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := &bench{T: t, clock: pipeline.NewRealClock(), policy: pipeline.DefaultPolicy(), stages: 1, calls: 12, without: map[string]bool{}}
		for _, edit := range edits {
			edit(b)
		}
		b.back = wiring.InMemory(b.policy, b.clock)
		b.back.Skew = func() time.Duration { return b.skew }
		if b.store != nil {
			b.back.Store = b.store(b.back.Store)
		}
		if b.work != nil {
			b.back.Queues.Work = b.work(b.back.Queues.Work)
		}
		if b.forget != nil {
			b.back.Forget = func(_ context.Context, job pipeline.Job, _ []pipeline.ReplyKey, _ []string) error {
				return b.forget(job)
			}
		}
		if b.before != nil {
			if err := b.before(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		stop := b.run(ctx)
		drain, undo := context.WithCancel(ctx)
		defer undo()
		b.interrupt = undo
		if b.stopAfter > 0 {
			defer time.AfterFunc(b.stopAfter, undo).Stop()
		}
		report, err := smoke.Run(ctx, drain, b.canary())
		stop()
		for _, line := range report.Lines {
			t.Logf("%8v %-13s %-7s %s", line.At.Round(time.Millisecond), line.Check, line.Verdict, line.Text)
		}
		test(b, report, err)
	})
}

// run runs the stack's workers and its reaper, which sweeps every minute.
func (b *bench) run(ctx context.Context) (stop func()) {
	drain, end := context.WithCancel(ctx)
	model := b.model
	if model == nil {
		model = b.offline("", 0)
	}
	back := b.back
	if b.theirs != nil {
		back = b.theirs(b.back)
	}
	system := wiring.New(back, wiring.Config{
		Worker: "work-1", Policy: b.policy, Clock: b.clock, Model: model, InFlight: 8, Read: ingest.New(ingest.Config{Clock: b.clock}).Read,
	})
	if b.without["control"] {
		back := *back
		back.Queues.Control = silent{back.Queues.Control, b.clock}
		system = wiring.New(&back, wiring.Config{Worker: "work-1", Policy: b.policy, Clock: b.clock, Model: model})
	}
	if b.without["work"] {
		back := *back
		back.Queues.Work = silent{back.Queues.Work, b.clock}
		system = wiring.New(&back, wiring.Config{Worker: "control-1", Policy: b.policy, Clock: b.clock, Read: ingest.New(ingest.Config{Clock: b.clock}).Read})
	}
	var group pipeline.Group
	group.Go(func() { system.Worker().Run(ctx, drain) })
	if !b.without["reaper"] {
		group.Go(func() { system.Reaper.Run(drain, time.Minute) })
	}
	return func() { end(); group.Wait() }
}

// silent is a queue from which nobody receives.
type silent struct {
	pipeline.Queue
	clock pipeline.Clock
}

func (s silent) Receive(ctx context.Context, _ int, wait time.Duration) ([]pipeline.Delivery, error) {
	return nil, s.clock.Sleep(ctx, wait)
}

func (b *bench) offline(_ string, pace time.Duration) pipeline.Model {
	return scripted{clock: b.clock, name: "offline", pace: pace}
}

func (b *bench) canary() smoke.Config {
	return smoke.Config{
		Backend: b.back, Policy: b.policy, Clock: b.clock, Text: text(3), Poison: poison, Nonce: "n", Patience: 10 * time.Minute,
		Definition: pipelinetest.NewDefinition(b.stages, b.calls, func(d *pipeline.Definition) {
			d.Tolerance = 0.5
			for _, stage := range d.Stages {
				for i := range stage.Calls {
					stage.Calls[i].Uses = nil // what is asked depends on no answer
				}
			}
		}),
		Model: b.offline, Start: b.start, Beside: b.cfg.Beside,
	}
}

// process is a worker process: killed, none of its calls does anything any more.
type process struct {
	ctx, drain context.Context
	die, stop  context.CancelFunc
	exited     chan struct{}

	mu     sync.Mutex
	dead   bool
	asked  []pipeline.ReplyKey
	failed error
}

func (b *bench) start(ctx context.Context, o smoke.Orders) (smoke.Process, error) {
	if b.early > 0 { // the stack's reaper rings first, and its workers are through before the canary's begins
		b.early--
		s := wiring.New(b.back, wiring.Config{Tenant: smoke.Tenant, Worker: "desk", Policy: b.policy, Clock: b.clock})
		if _, err := s.Submitter.Start(ctx, o.Job); err != nil {
			return nil, err
		}
		if err := b.clock.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	p := &process{exited: make(chan struct{})}
	p.ctx, p.die = context.WithCancel(context.WithoutCancel(ctx))
	p.drain, p.stop = context.WithCancel(p.ctx)
	back := *b.back
	back.Store, back.Blobs = pipelinetest.Wrap(back.Store, p.stand), pipelinetest.WrapBlobs(back.Blobs, p.stand)
	back.Queues.Control, back.Queues.Work = pipelinetest.WrapQueue(back.Queues.Control, p.stand), pipelinetest.WrapQueue(back.Queues.Work, p.stand)
	setup := smoke.Setup{Backend: &back, Policy: b.policy, Clock: b.clock}
	if b.mine != nil {
		setup.Backend = b.mine(setup.Backend)
	}
	model := scripted{clock: b.clock, name: "offline", pace: o.Pace, kill: func() { _ = p.Kill() }, asks: p.ask}
	go func() {
		defer close(p.exited)
		err := smoke.Work(p.ctx, p.drain, setup, model, o)
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.dead {
			p.failed = err
		}
	}()
	return p, nil
}

func (p *process) stand(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error {
	if p.isDead() {
		return pipelinetest.ErrKilled
	}
	err := do(ctx)
	if p.isDead() {
		return pipelinetest.ErrKilled
	}
	return err
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) ask(key pipeline.ReplyKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, key)
}

func (p *process) Kill() error {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.die()
	return nil
}

func (p *process) Stop()                   { p.stop() }
func (p *process) Exited() <-chan struct{} { return p.exited }

func (p *process) Killed() bool { return p.isDead() }

func (p *process) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *process) Asked() ([]pipeline.ReplyKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]pipeline.ReplyKey{}, p.asked...), nil
}

// breaks checks that a check did not hold, and said this.
func (b *bench) breaks(r smoke.Report, check, says string) {
	b.Helper()
	if r.Held() {
		b.Errorf("every promise was kept, want one of %q broken", check)
	}
	for _, line := range r.Lines {
		if line.Verdict == smoke.Broken && line.Check == check && strings.Contains(line.Text, says) {
			return
		}
	}
	b.Errorf("no line of %q is broken and says %q", check, says)
}

var errRefused = errors.New("refused")

// says checks that a text says that.
func says(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("got %q, want it to say %q", text, want)
	}
}
