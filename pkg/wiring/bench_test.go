package wiring_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one backend in memory, in virtual time, and the processes over it.
type world struct {
	testing.TB
	ctx    context.Context
	clock  pipeline.RealClock
	policy pipeline.Policy
	back   *wiring.Backend
	model  *model
	desk   *wiring.System // of the person who submits
	all    []*process
}

// in runs a test in virtual time. Processes that it started are killed at its end.
func in(t *testing.T, test func(w *world), edits ...func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &world{TB: t, ctx: ctx, clock: pipeline.NewRealClock(), policy: pipeline.DefaultPolicy()}
		for _, edit := range edits {
			edit(w)
		}
		w.back = wiring.InMemory(w.policy, w.clock)
		w.model = newModel(w)
		w.desk = wiring.New(w.back, wiring.Config{Tenant: "tenant", Worker: "desk", Policy: w.policy, Clock: w.clock, Model: w.model, Jitter: half})
		defer func() {
			for _, p := range w.all {
				p.kill()
			}
		}()
		test(w)
	})
}

func half() float64 { return 0.5 }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// text is a document of so many paragraphs, each of about one chunk and unlike the others.
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

// small is three stages with two calls each, that may be partial.
func small() pipeline.Definition {
	return pipelinetest.NewDefinition(3, 2, func(d *pipeline.Definition) { d.Tolerance = 1 })
}

func (w *world) submit(body string, edits ...func(*submit.Submission)) pipeline.Job {
	w.Helper()
	sub := submit.Submission{Name: "contract.txt", Source: []byte(body), Definition: small(), Model: w.model.Info()}
	for _, edit := range edits {
		edit(&sub)
	}
	job, _, err := w.desk.Submitter.Submit(w.ctx, sub)
	w.must(err)
	return job
}

func (w *world) job(id pipeline.JobID) pipeline.Job {
	w.Helper()
	job, err := w.back.Store.Job(w.ctx, id)
	w.must(err)
	return job
}

func (w *world) rows(id pipeline.JobID) []pipeline.Task {
	w.Helper()
	rows, err := pipeline.AllTasks(w.ctx, w.back.Store, id)
	w.must(err)
	return rows
}

// ends lets time pass until the job has ended, and checks how.
func (w *world) ends(id pipeline.JobID, within time.Duration, want pipeline.JobStatus) pipeline.Job {
	w.Helper()
	for begin := w.clock.Mono(); !w.job(id).Status.Ended(); {
		if w.clock.Mono()-begin > within {
			var rows []string
			for _, row := range w.rows(id) {
				rows = append(rows, fmt.Sprintf("%s %s a%d d%d l%d by %s due %s ready %s %s", row.ID, row.Status, row.Attempts, row.Deferrals, row.Losses, row.ClaimedBy, row.DueAt, row.ReadyAt, row.Reason))
			}
			w.Fatalf("after %v (%s) the job is %s\n%s", within, w.clock.Now(), w.job(id).Status, strings.Join(rows, "\n"))
		}
		time.Sleep(100 * time.Millisecond)
	}
	job := w.job(id)
	if job.Status != want {
		w.Errorf("the job is %s (%s), want %s", job.Status, job.Reason, want)
	}
	return job
}

func (w *world) result(id pipeline.JobID) pipeline.Result {
	w.Helper()
	job := w.job(id)
	body, err := w.back.Blobs.Blob(w.ctx, job.Result)
	w.must(err)
	r, err := pipeline.Decode[pipeline.Result](body, "result")
	w.must(err)
	return r
}

// complete checks what completed means: every cell answered, nothing missing, every row done, no queue with a message,
// no more spent or sent than was planned.
func (w *world) complete(id pipeline.JobID, chunks int) pipeline.Result {
	w.Helper()
	r := w.result(id)
	cells := chunks * 6
	if r.Counts.Cells != cells || r.Counts.Answered != cells || len(r.Missing) != 0 {
		w.Errorf("got the counts %+v and %d missing, want %d cells, all answered", r.Counts, len(r.Missing), cells)
	}
	w.sound(id)
	return r
}

// sound checks what holds of every ended job, at most an hour later: finalize ends its own row after the job, and one
// whose worker died in between is expired, or closed when it is due.
func (w *world) sound(id pipeline.JobID) {
	w.Helper()
	open := func(row pipeline.Task) bool { return !row.Status.Ended() }
	for waited := time.Duration(0); waited < time.Hour && slices.ContainsFunc(w.rows(id), open); waited += time.Second {
		time.Sleep(time.Second)
	}
	for _, row := range w.rows(id) {
		if !row.Status.Ended() {
			w.Errorf("%s is %s in an ended job", row.ID, row.Status)
		}
		if row.Allowed > row.MaxTries {
			w.Errorf("%s was allowed %d tries of %d", row.ID, row.Allowed, row.MaxTries)
		}
	}
	budget, err := w.back.Store.Budget(w.ctx, id)
	if err == nil && budget.Spent > budget.Ceiling {
		w.Errorf("spent %s, the ceiling is %s", budget.Spent, budget.Ceiling)
	}
}

// start makes a worker process: worker and reaper over the backend, with around before all of its ports.
func (w *world) start(name string, around pipelinetest.Around, edits ...func(*wiring.Config)) *process {
	return w.startWith(name, func(*process) pipelinetest.Around { return around }, edits...)
}

// startWith is start with an around that knows its process.
func (w *world) startWith(name string, around func(p *process) pipelinetest.Around, edits ...func(*wiring.Config)) *process {
	p := &process{w: w, done: make(chan struct{})}
	p.around = around(p)
	back := &wiring.Backend{
		Store: pipelinetest.Wrap(w.back.Store, p.stand), Blobs: pipelinetest.WrapBlobs(w.back.Blobs, p.stand),
		Queues: pipeline.Queues{
			Control: pipelinetest.WrapQueue(w.back.Queues.Control, p.stand),
			Work:    pipelinetest.WrapQueue(w.back.Queues.Work, p.stand),
		},
	}
	id := 0
	cfg := wiring.Config{
		Tenant: "tenant", Worker: name, Policy: w.policy, Clock: w.clock, Model: w.model, InFlight: 4, Claims: 4, Jitter: half, Kill: p.freeze,
		Read: ingest.New(ingest.Config{Clock: w.clock}).Read,
		NewID: func() string {
			p.mu.Lock()
			defer p.mu.Unlock()
			id++
			return fmt.Sprintf("%s-%d", name, id)
		},
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	system := wiring.New(back, cfg)
	ctx, stop := context.WithCancel(w.ctx)
	drain, stopDrain := context.WithCancel(w.ctx)
	p.stop, p.drain = stop, stopDrain
	w.all = append(w.all, p)
	worker := system.Worker()
	go func() {
		defer close(p.done)
		var group pipeline.Group
		group.Go(func() { worker.Run(ctx, drain) })
		group.Go(func() { system.Reaper.Run(drain, time.Second) })
		group.Wait()
	}()
	return p
}

// process is a worker process that can be frozen and killed.
type process struct {
	w      *world
	around pipelinetest.Around
	stop   context.CancelFunc
	drain  context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	shut chan struct{} // open when nil
	dead bool
}

func (p *process) stand(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
	if err := p.wait(); err != nil {
		return err
	}
	if p.around == nil {
		return do(ctx)
	}
	err := p.around(ctx, op, do)
	if dead := p.wait(); dead != nil {
		return dead
	}
	return err
}

// wait blocks while the process is frozen.
func (p *process) wait() error {
	for {
		p.mu.Lock()
		shut, dead := p.shut, p.dead
		p.mu.Unlock()
		if dead {
			return pipelinetest.ErrKilled
		}
		if shut == nil {
			return nil
		}
		<-shut
	}
}

// freeze stops the process at its next port call, as SIGSTOP, or SIGKILL if it is never thawed.
func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut == nil {
		p.shut = make(chan struct{})
	}
}

func (p *process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut != nil {
		close(p.shut)
		p.shut = nil
	}
}

func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.thaw()
	p.drain()
	p.stop()
	<-p.done
}

// model answers every question with a score and a finding, and knows whether the answer was stored before.
type model struct {
	w     *world
	takes time.Duration
	react func(n int, r pipeline.Request) error

	mu     sync.Mutex
	asked  int
	per    map[pipeline.ReplyKey]int
	stored int // asked although the reply was stored
	last   pipeline.Instant
}

func newModel(w *world) *model {
	return &model{w: w, takes: 100 * time.Millisecond, per: map[pipeline.ReplyKey]int{}}
}

func (m *model) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{Name: "scripted", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000}, ContextTokens: 100_000, MaxOutput: 4000}
}

func (m *model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	found, _, err := m.w.back.Store.Replies(context.WithoutCancel(ctx), []pipeline.ReplyKey{r.Key})
	m.mu.Lock()
	m.asked++
	n := m.asked
	m.per[r.Key]++
	m.last = m.w.clock.Now()
	if err == nil && len(found) > 0 {
		m.stored++
	}
	m.mu.Unlock()
	if err := m.w.clock.Sleep(ctx, m.takes); err != nil {
		return pipeline.Response{}, err
	}
	if m.react != nil {
		if err := m.react(n, r); err != nil {
			return pipeline.Response{}, err
		}
	}
	return pipeline.Response{
		Text: `{"score": 0.9}`, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: r.InputTokens(), Output: 5},
	}, nil
}

// lastAsked is when a call last started.
func (m *model) lastAsked() pipeline.Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *model) count() (asked, keys, stored int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked, len(m.per), m.stored
}
