package scale

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// inFlightLimit is how many messages of a standard queue may be in flight:
// docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html.
const inFlightLimit = 120_000

// How Lambda reads a standard queue: docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html (read in November
// 2026): five batches at once at first, up to 300 more a minute while there are messages, at most 1,000.
const (
	sourceFirst     = 5
	sourcePerMinute = 300
	sourceMost      = 1000
)

// world is one deployment in virtual time.
type world struct {
	*testing.T
	ctx    context.Context
	stop   context.CancelFunc
	clock  pipeline.RealClock
	policy pipeline.Policy
	meter  *meter
	inner  *memory.Store
	back   *wiring.Backend
	queues [2]*memory.Queue
	model  *model
	group  pipeline.Group
	began  time.Duration

	mu       sync.Mutex
	visible  int // the most messages of the work queue that waited
	inFlight int // the most that were in flight
}

// in runs a test in virtual time.
func in(t *testing.T, tokensPerMinute int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := &world{T: t, ctx: ctx, stop: stop, clock: pipeline.NewRealClock(), policy: pipeline.DefaultPolicy(), inner: memory.New()}
		w.meter = newMeter(w.clock)
		w.model = &model{clock: w.clock, perMinute: tokensPerMinute, asked: map[pipeline.ReplyKey]int{}}
		for i := range w.queues {
			w.queues[i] = memory.NewQueue(memory.QueueConfig{Visibility: w.policy.Visibility(), MaxReceives: w.policy.MaxReceives, Now: w.clock.Now})
		}
		w.back = &wiring.Backend{
			Store: &table{Store: pipelinetest.Wrap(w.inner, w.meter.made), stands: w.inner, meter: w.meter}, Blobs: w.inner,
			Queues: pipeline.Queues{Control: w.queues[0], Work: w.queues[1]},
		}
		w.began = w.clock.Mono()
		w.start("reaper", wiring.Config{}, func(s *wiring.System) { s.Reaper.Run(w.ctx, time.Minute) }) // the function that reaps
		w.group.Go(w.watch)
		defer w.end()
		test(w)
	})
}

// end stops every process and waits for it.
func (w *world) end() {
	w.stop()
	w.group.Wait()
}

// start runs a process.
func (w *world) start(name string, cfg wiring.Config, run func(*wiring.System)) {
	cfg.Worker, cfg.Tenant, cfg.Policy, cfg.Clock = name, "tenant", w.policy, w.clock
	cfg.Read = ingest.New(ingest.Config{Clock: w.clock}).Read
	n := 0
	var mu sync.Mutex
	cfg.NewID = func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("%s-%d", name, n)
	}
	system := wiring.New(w.back, cfg)
	w.group.Go(func() { run(system) })
}

// worker polls both queues.
func (w *world) worker(name string, inFlight, claims int, beside func(*wiring.System)) {
	w.start(name, wiring.Config{Model: w.model, InFlight: inFlight, Claims: claims}, func(s *wiring.System) {
		var group pipeline.Group
		group.Go(func() { s.Worker().Run(w.ctx, w.ctx) })
		group.Go(func() { beside(s) })
		group.Wait()
	})
}

// fleet is n pollers that are there when the documents come. The function reaps for them.
func (w *world) fleet(n, inFlight, claims int) {
	for i := range n {
		w.worker(fmt.Sprintf("workd-%03d", i), inFlight, claims, func(*wiring.System) {})
	}
}

// eventSource starts what Lambda would start for the queue: environments that take one chunk at a time, more of them
// while messages wait.
func (w *world) eventSource(inFlight, most int) {
	w.group.Go(func() {
		for n := 0; n < min(most, sourceMost); {
			if n >= sourceFirst {
				if w.clock.Sleep(w.ctx, time.Minute/sourcePerMinute) != nil {
					return
				}
				if waiting, _, err := w.queues[1].Depth(w.ctx); err != nil || waiting == 0 {
					continue
				}
			}
			w.worker(fmt.Sprintf("lambda-%04d", n), inFlight, 1, func(*wiring.System) {})
			n++
		}
	})
}

// watch looks at the work queue every second.
func (w *world) watch() {
	for w.clock.Sleep(w.ctx, time.Second) == nil {
		visible, inFlight, err := w.queues[1].Depth(w.ctx)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.visible, w.inFlight = max(w.visible, visible), max(w.inFlight, inFlight)
		w.mu.Unlock()
	}
}

// callsOfChunk is the shape of contract review, less six calls: 110.
var callsOfChunk = []int{1, 11, 82, 12, 4}

const perChunk = 110

// definition asks perChunk calls of every chunk.
func definition() pipeline.Definition {
	d := pipelinetest.NewDefinition(1, 1)
	d.Stages = nil
	for s, calls := range callsOfChunk {
		d.Stages = append(d.Stages, pipelinetest.NewDefinition(s+1, calls).Stages[s])
	}
	return d
}

// text is a document of so many chunks; no cell of it is that of another.
func text(name string, chunks int) string {
	var b strings.Builder
	for n := range chunks {
		fmt.Fprintf(&b, "%d. Clause number %d.\n\n", n+1, n+1)
		for line := range 11 {
			fmt.Fprintf(&b, "Party %s of part %d.%d shall hold the other harmless from all claims that arise of it, in whole or in part.\n", name, n+1, line)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// submits a document and starts it.
func (w *world) submit(tenant, name string, chunks int) pipeline.JobID {
	w.Helper()
	desk := wiring.New(w.back, wiring.Config{Tenant: tenant, Worker: "desk", Policy: w.policy, Clock: w.clock, Model: w.model})
	job, _, err := desk.Submitter.Submit(w.ctx, submit.Submission{Name: name + ".txt", Source: []byte(text(name, chunks)), Definition: definition(), Model: w.model.Info()})
	if err != nil {
		w.Fatal(err)
	}
	return job.ID
}

// took lets time pass until the jobs have ended, and returns how long each took from now.
func (w *world) took(jobs []pipeline.JobID) []time.Duration {
	w.Helper()
	began, took := w.clock.Mono(), make([]time.Duration, len(jobs))
	for slices.Contains(took, 0) {
		time.Sleep(time.Second)
		if w.clock.Mono()-began > 12*time.Hour {
			w.Fatalf("not all have ended after 12 h: %v", took)
		}
		for i, id := range jobs {
			if job, err := w.inner.Job(w.ctx, id); err != nil {
				w.Fatal(err)
			} else if took[i] == 0 && job.Status.Ended() {
				took[i] = w.clock.Mono() - began
			}
		}
	}
	return took
}

// model answers after two to six seconds, always the same for the same question.
type model struct {
	clock     pipeline.Clock
	perMinute int

	mu    sync.Mutex
	asked map[pipeline.ReplyKey]int
	now   int
	most  int // at once
	used  int // tokens
}

func (m *model) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{
		Name: "scripted", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000},
		ContextTokens: 100_000, MaxOutput: 4000, TokensPerMinute: m.perMinute,
	}
}

func (m *model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.Key)) // it never fails
	m.mu.Lock()
	m.asked[r.Key]++
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	err := m.clock.Sleep(ctx, 2*time.Second+time.Duration(h.Sum32()%4000)*time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now--
	if err != nil {
		return pipeline.Response{}, err
	}
	usage := pipeline.Usage{Input: r.InputTokens(), Output: 90}
	m.used += usage.Input + usage.Output
	return pipeline.Response{Text: answer, Stop: pipeline.StopEnd, Usage: usage}, nil
}

// answer is as long as most are.
var answer = `{"score": 0.9, "note": "` + strings.Repeat("as the clause says ", 16) + `"}`
