package call_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/call"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const theJob pipeline.JobID = "0123456789-1"

// bench is a caller over an empty store in virtual time.
type bench struct {
	*testing.T
	ctx    context.Context
	store  *memory.Store
	model  *model
	clock  pipeline.RealClock
	policy pipeline.Policy
	cfg    call.Config
	*call.Caller
}

// in runs a test in virtual time; edits change the caller's config, its model and its ports.
func in(t *testing.T, name string, test func(b *bench), edits ...func(b *bench)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{T: t, ctx: t.Context(), store: memory.New(), model: newModel(), clock: pipeline.NewRealClock(), policy: pipeline.DefaultPolicy()}
			b.must(b.store.OpenBudget(b.ctx, theJob, 1000*pipeline.Dollar))
			b.cfg = call.Config{
				Model: b.model, Replies: b.store, Blobs: b.store, Budgets: b.store, Limits: b.store,
				Clock: b.clock, Policy: b.policy, InFlight: 8, Jitter: func() float64 { return 0.5 },
			}
			for _, edit := range edits {
				edit(b)
			}
			b.Caller = call.New(b.cfg)
			test(b)
		})
	})
}

// ports puts something before all of the caller's ports of the store.
func (b *bench) ports(around pipelinetest.Around) {
	store := pipelinetest.Wrap(b.store, around)
	b.cfg.Replies, b.cfg.Budgets, b.cfg.Limits = store, store, store
	b.cfg.Blobs = pipelinetest.WrapBlobs(b.store, around)
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// ask asks questions of these names under an attempt of task n, and settles.
func (b *bench) ask(n int, names ...string) []pipeline.Answer {
	return b.askAs(newAttempt(n), names...)
}

func (b *bench) askAs(a *attempt, names ...string) []pipeline.Answer {
	var questions []pipeline.Question
	for _, name := range names {
		questions = append(questions, question(name))
	}
	answers := b.Ask(b.ctx, a, questions)
	b.Done(b.ctx, a)
	return answers
}

func (b *bench) one(n int, name string) pipeline.Answer { return b.ask(n, name)[0] }

func (b *bench) budget() pipeline.Budget {
	b.Helper()
	budget, err := b.store.Budget(b.ctx, theJob)
	b.must(err)
	return budget
}

// kind checks how an answer ended.
func (b *bench) kind(answer pipeline.Answer, want pipeline.Kind, defers bool) {
	b.Helper()
	if answer.Stop != nil || answer.Failure.Kind != want || answer.Defers != defers {
		b.Errorf("got %q (defers %v, stop %v), want %q (defers %v)", answer.Failure, answer.Defers, answer.Stop, want, defers)
	}
}

// text checks that a question was answered so.
func (b *bench) text(answer pipeline.Answer, want string) {
	b.Helper()
	if answer.Stop != nil || !answer.Failure.None() || answer.Reply.Text != want {
		b.Errorf("got %q, failure %q, stop %v, want %q", answer.Reply.Text, answer.Failure, answer.Stop, want)
	}
}

func question(name string) pipeline.Question {
	return pipeline.Question{
		Call: pipeline.Call{ID: name, MaxTokens: 100},
		Request: pipeline.Request{
			System: "You review text.", Shared: "The cap is ten.", Prompt: name, Schema: []byte(`{}`), MaxTokens: 100,
		},
		Check: func(text string) (string, bool, error) {
			switch {
			case text == "panic":
				panic("the checker")
			case strings.HasPrefix(text, "bad"):
				return "", false, errors.New("score: is missing in " + text)
			}
			return text, false, nil
		},
	}
}

// reaction is what the model does with one try.
type reaction struct {
	text  string
	stop  pipeline.Stop
	err   error
	takes time.Duration
	usage pipeline.Usage
}

func failing(kind pipeline.Kind, after time.Duration) reaction {
	return reaction{err: &pipeline.ModelError{Failure: pipeline.Fail(kind, "scripted %s", kind), RetryAfter: after}}
}

type sending struct {
	pipeline.Request
	at time.Duration
}

// model answers by a function of the call's name and how often it was asked.
type model struct {
	info  pipeline.ModelInfo
	react func(name string, n int) reaction
	clock pipeline.RealClock

	mu   sync.Mutex
	sent []sending
	n    map[string]int
	now  int // in flight
	most int
}

func newModel() *model {
	return &model{
		info: pipeline.ModelInfo{
			Name: "scripted", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000}, MaxOutput: 400,
		},
		clock: pipeline.NewRealClock(), n: map[string]int{},
		react: func(string, int) reaction { return reaction{text: `{"score": 1}`} },
	}
}

func (m *model) Info() pipeline.ModelInfo { return m.info }

func name(r pipeline.Request) string { n, _, _ := strings.Cut(r.Prompt, "\n"); return n }

func (m *model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	m.mu.Lock()
	m.sent = append(m.sent, sending{r, m.clock.Mono()})
	m.n[name(r)]++
	n := m.n[name(r)]
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
	}()
	reaction := m.react(name(r), n)
	if reaction.text == "model panics" {
		panic("the adapter")
	}
	if err := m.clock.Sleep(ctx, reaction.takes); err != nil {
		return pipeline.Response{}, err
	}
	if reaction.err != nil {
		return pipeline.Response{}, reaction.err
	}
	if reaction.usage == (pipeline.Usage{}) {
		reaction.usage = pipeline.Usage{Input: r.InputTokens(), Output: 20}
	}
	if reaction.stop == "" {
		reaction.stop = pipeline.StopEnd
	}
	return pipeline.Response{Text: reaction.text, Stop: reaction.stop, Usage: reaction.usage, RequestID: fmt.Sprintf("r%d", n)}, nil
}

func (m *model) sendings(of string) []sending {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []sending
	for _, s := range m.sent {
		if of == "" || name(s.Request) == of {
			all = append(all, s)
		}
	}
	return all
}

// script lets the model react to the nth try of anything so; the last reaction stays.
func script(reactions ...reaction) func(b *bench) {
	return func(b *bench) {
		b.model.react = func(_ string, n int) reaction { return reactions[min(n, len(reactions))-1] }
	}
}

// attempt is an attempt that allows every try until it is stopped.
type attempt struct {
	claim pipeline.Claim

	mu       sync.Mutex
	stop     error
	stopped  chan struct{}
	maySend  func() error
	taken    int
	unsent   int
	answered int
	tries    []pipeline.Try
}

func newAttempt(n int) *attempt {
	a := &attempt{stopped: make(chan struct{})}
	a.claim.Ref = pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}
	a.claim.Generation, a.claim.ClaimID, a.claim.Stages = 1, fmt.Sprintf("claim-%d", n), 3
	return a
}

func (a *attempt) halt(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil {
		a.stop = why
		close(a.stopped)
	}
}

func (a *attempt) Claim() pipeline.Claim { return a.claim }

func (a *attempt) Job() pipeline.Job {
	return pipelinetest.NewJob(theJob, func(j *pipeline.Job) { j.Deadline = 0 })
}
func (a *attempt) Worker() string { return "worker" }

func (a *attempt) MaySend(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		return a.stop
	}
	if a.maySend != nil {
		if err := a.maySend(); err != nil {
			return err
		}
	}
	a.taken++
	return nil
}

func (a *attempt) Stopped() <-chan struct{} { return a.stopped }

func (a *attempt) Stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stop
}

func (a *attempt) Unsent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsent++
}

func (a *attempt) Record(t pipeline.Try) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tries = append(a.tries, t)
}

func (a *attempt) Answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered++
}

func (a *attempt) Progress()                                     {}
func (a *attempt) Checkpoint(context.Context, int, []byte) error { return nil }
func (a *attempt) Fence(context.Context) error                   { return nil }
func (a *attempt) Last() bool                                    { return false }

// again is another process's caller over the same ports.
func (b *bench) again() *call.Caller { return call.New(b.cfg) }
