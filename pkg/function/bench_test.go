package function_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"go.uber.org/goleak"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/ingest"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stack is a deployment in memory and in virtual time: its queues, its functions, and what AWS does between them.
type stack struct {
	*testing.T
	ctx           context.Context
	clock         pipeline.RealClock
	policy        pipeline.Policy
	back          *wiring.Backend
	control, work *memory.Queue
	model         *model
	around        pipelinetest.Around
	mu            sync.Mutex
	processes     map[config.Process]*function.Process
	log, metrics  lockedBuffer
	stages, calls int           // of a chunk: so many stages with so many calls each
	inFlight      string        // calls of a process at once
	dead          atomic.Bool   // the process of chunks was killed in the middle of its event
	longest       time.Duration // that an event took
	desk          *wiring.System
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// model answers every call after a while, unless it reacts otherwise.
type model struct {
	clock pipeline.Clock
	takes time.Duration
	react func(n int, r pipeline.Request) error

	mu      sync.Mutex
	asked   int
	aborted int
}

func (*model) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{Name: "scripted", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000}, ContextTokens: 100_000, MaxOutput: 4000}
}

func (m *model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	m.mu.Lock()
	m.asked++
	n := m.asked
	m.mu.Unlock()
	if err := m.clock.Sleep(ctx, m.takes); err != nil {
		m.mu.Lock()
		m.aborted++
		m.mu.Unlock()
		return pipeline.Response{}, err
	}
	if m.react != nil {
		if err := m.react(n, r); err != nil {
			return pipeline.Response{}, err
		}
	}
	return pipeline.Response{Text: `{"score": 0.5}`, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: 100, Output: 10}}, nil
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

func refuse(kind pipeline.Kind) error {
	return &pipeline.ModelError{Failure: pipeline.Fail(kind, "says %s", kind)}
}

func in(t *testing.T, name string, test func(s *stack), edits ...func(s *stack)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &stack{T: t, ctx: ctx, clock: pipeline.NewRealClock(), policy: pipeline.DefaultPolicy(), processes: map[config.Process]*function.Process{}, stages: 3, calls: 2, inFlight: "32"}
			s.model = &model{clock: s.clock, takes: 100 * time.Millisecond}
			s.around = func(ctx context.Context, _ pipelinetest.Op, do func(context.Context) error) error { return do(ctx) }
			for _, edit := range edits {
				edit(s)
			}
			store := memory.New()
			queue := func() *memory.Queue {
				return memory.NewQueue(memory.QueueConfig{Visibility: s.policy.FunctionVisibility(), MaxReceives: s.policy.MaxReceives, Now: s.clock.Now})
			}
			s.control, s.work = queue(), queue()
			s.back = &wiring.Backend{Store: store, Blobs: store, Queues: pipeline.Queues{Control: s.control, Work: s.work}, Close: func() error { return nil }}
			s.desk = wiring.New(s.back, wiring.Config{Tenant: "tenant", Worker: "desk", Policy: s.policy, Clock: s.clock, Model: s.model})
			test(s)
		})
	})
}

func (s *stack) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// env is the environment of a process, with what differs from the default.
func (s *stack) env(p config.Process, pairs ...string) config.Environment {
	s.Helper()
	set := map[string]string{config.StackVar: "blue", config.ModelVar: "offline", config.InFlightVar: s.inFlight}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	env, err := config.ReadEnvironment(p, func(name string) (string, bool) {
		value, is := set[name]
		return value, is
	})
	s.must(err)
	env.Policy = s.policy
	return env
}

// process is one of the stack's, made at its first use, as AWS does.
func (s *stack) process(p config.Process, pairs ...string) *function.Process {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.processes[p]; made != nil {
		return made
	}
	back := *s.back
	back.Store = pipelinetest.Wrap(s.back.Store, s.around)
	if p == config.Work {
		lives := func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if s.dead.Load() {
				return pipelinetest.ErrKilled // nothing of a dead process reaches a port
			}
			return s.around(ctx, op, do)
		}
		back.Store = pipelinetest.Wrap(s.back.Store, lives)
		back.Queues = pipeline.Queues{Control: pipelinetest.WrapQueue(s.back.Queues.Control, lives), Work: pipelinetest.WrapQueue(s.back.Queues.Work, lives)}
	}
	env := s.env(p, pairs...)
	var metrics io.Writer = &s.metrics
	if p == config.Work {
		metrics = living{s}
	}
	made, err := function.New(env, function.Parts{
		Backend: &back, Model: s.model, Read: ingest.New(ingest.Config{Clock: s.clock}).Read, Clock: s.clock,
		Log: function.Logger(&s.log, env), Metrics: metrics, Jitter: func() float64 { return 0.5 },
	})
	s.must(err)
	s.processes[p] = made
	return made
}

// invoke is one event as Lambda hands it over: as JSON, with the function's time-out.
func (s *stack) invoke(p config.Process, handler, event any, within time.Duration) ([]byte, error) {
	s.Helper()
	body, err := json.Marshal(event)
	s.must(err)
	ctx, stop := context.WithTimeout(s.ctx, within)
	defer stop()
	began := s.clock.Mono()
	answer, err := lambda.NewHandler(handler).Invoke(ctx, body)
	took := s.clock.Mono() - began
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, took)
	if took >= within {
		s.Errorf("an event of %s took %v: that is a time-out", p, took)
	}
	return answer, err
}

// feed is the event source of a queue: it receives, invokes, and deletes what the answer does not name. It returns how
// many messages there were, and which of them came back.
func (s *stack) feed(p config.Process, queue *memory.Queue) (handed int, back []string) {
	s.Helper()
	deliveries, err := queue.Receive(s.ctx, config.Batch(p), 0)
	s.must(err)
	if len(deliveries) == 0 {
		return 0, nil
	}
	answer, err := s.invoke(p, s.process(p).HandleQueue, sqsEvent(deliveries), config.Timeout(p, s.policy))
	if p == config.Work && s.dead.Load() { // there is no answer, and the next event has another process
		s.mu.Lock()
		delete(s.processes, p)
		s.mu.Unlock()
		s.dead.Store(false)
		return len(deliveries), nil
	}
	s.must(err)
	return len(deliveries), s.settle(queue, deliveries, answer)
}

func sqsEvent(deliveries []pipeline.Delivery) events.SQSEvent {
	var e events.SQSEvent
	for i, d := range deliveries {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: fmt.Sprintf("m-%d", i), ReceiptHandle: d.Receipt, Body: string(d.Body),
			Attributes: map[string]string{
				"ApproximateReceiveCount": strconv.Itoa(d.Receives), "SentTimestamp": strconv.FormatInt(int64(d.SentAt), 10),
			},
		})
	}
	return e
}

func (s *stack) settle(queue *memory.Queue, deliveries []pipeline.Delivery, answer []byte) (back []string) {
	s.Helper()
	var said struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	s.must(json.Unmarshal(answer, &said))
	stays := map[string]bool{}
	for _, failure := range said.BatchItemFailures {
		stays[failure.ItemIdentifier] = true
		back = append(back, failure.ItemIdentifier)
	}
	for i, d := range deliveries {
		if !stays[fmt.Sprintf("m-%d", i)] {
			_, err := queue.Delete(s.ctx, []pipeline.Delivery{d})
			s.must(err)
		}
	}
	return back
}

func (s *stack) reap() error {
	s.Helper()
	_, err := s.invoke(config.Reap, s.process(config.Reap).HandleSchedule, events.EventBridgeEvent{Source: "aws.events"}, config.ReapTimeout)
	return err
}

// runs feeds both queues and reaps every minute, until the job has ended or the time is over.
func (s *stack) runs(id pipeline.JobID, most time.Duration) pipeline.Job {
	s.Helper()
	var group pipeline.Group
	defer group.Wait()
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	for _, source := range []struct {
		p     config.Process
		queue *memory.Queue
	}{{config.Control, s.control}, {config.Work, s.work}} {
		s.process(source.p)
		group.Go(func() {
			for s.clock.Sleep(ctx, 500*time.Millisecond) == nil {
				s.feed(source.p, source.queue)
			}
		})
	}
	s.process(config.Reap)
	group.Go(func() {
		for s.clock.Sleep(ctx, config.ReapEvery) == nil {
			s.must(s.reap())
		}
	})
	return s.ends(id, most)
}

func (s *stack) ends(id pipeline.JobID, most time.Duration) pipeline.Job {
	s.Helper()
	for begin := s.clock.Mono(); s.clock.Mono()-begin < most; time.Sleep(time.Second) {
		job, err := s.back.Store.Job(s.ctx, id)
		s.must(err)
		if job.Status.Ended() {
			return job
		}
	}
	rows, err := pipeline.AllTasks(s.ctx, s.back.Store, id)
	s.must(err)
	var stands []string
	for _, row := range rows {
		stands = append(stands, fmt.Sprintf("%s %s a%d d%d ready %s due %s %s", row.ID, row.Status, row.Attempts, row.Deferrals, row.ReadyAt, row.DueAt, row.Reason))
	}
	s.Errorf("after %v (%s) the job has not ended:\n%s", most, s.clock.Now(), strings.Join(stands, "\n"))
	return pipeline.Job{}
}

func (s *stack) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// submit submits a document of so many chunks.
func (s *stack) submit(chunks int) pipeline.Job {
	s.Helper()
	var text strings.Builder
	for n := range chunks {
		fmt.Fprintf(&text, "%d. Clause number %d.\n\n", n+1, n+1)
		for line := range 11 {
			fmt.Fprintf(&text, "The party of part %d.%d shall hold the other harmless from all claims that arise of it, in whole or in part.\n", n+1, line)
		}
		text.WriteString("\n")
	}
	job, _, err := s.desk.Submitter.Submit(s.ctx, submit.Submission{
		Name: "contract.txt", Source: []byte(text.String()), Model: s.model.Info(),
		Definition: pipelinetest.NewDefinition(s.stages, s.calls, func(d *pipeline.Definition) { d.Tolerance = 1 }),
	})
	s.must(err)
	return job
}

// whole checks that the job ended with every cell answered, and that no healthy work was given up.
func (s *stack) whole(job pipeline.Job) {
	s.Helper()
	if job.Status != pipeline.JobCompleted {
		s.Errorf("the job is %s (%s), want completed", job.Status, job.Reason)
	}
	rows, err := pipeline.AllTasks(s.ctx, s.back.Store, job.ID)
	s.must(err)
	for _, row := range rows {
		if row.Status != pipeline.TaskDone {
			s.Errorf("%s is %s (%s)", row.ID, row.Status, row.Reason)
		}
	}
}

// row puts a row of a job that runs, and sends its bell.
func (s *stack) row(n int, edits ...func(*pipeline.Task)) pipeline.Task {
	s.Helper()
	const id = "0123456789-1"
	if _, err := s.back.Store.Job(s.ctx, id); errors.Is(err, pipeline.ErrNotFound) {
		split := pipelinetest.NewRow(id, pipeline.SplitTask, func(t *pipeline.Task) { t.Status, t.Stages, t.Accepted = pipeline.TaskDone, 1, 1 })
		_, _, err := s.back.Store.Submit(s.ctx, pipelinetest.NewJob(id, func(j *pipeline.Job) { j.Deadline = s.clock.Now().Add(time.Hour) }), split)
		s.must(err)
	}
	now := s.clock.Now()
	row := pipelinetest.NewRow(id, pipeline.WorkTask(n), func(t *pipeline.Task) { t.ReadyAt, t.DueAt = now, now.Add(s.policy.RingDelay) })
	for _, edit := range edits {
		edit(&row)
	}
	_, err := s.back.Store.PutTasks(s.ctx, []pipeline.Task{row})
	s.must(err)
	return row
}

// metric is the sum of a metric in all lines that were written.
func (s *stack) metric(name string) (sum int, written bool) {
	s.Helper()
	for line := range strings.Lines(s.metrics.String()) {
		var counts map[string]any
		s.must(json.Unmarshal([]byte(line), &counts))
		if n, is := counts[name].(float64); is {
			sum, written = sum+int(n), true
		}
	}
	return sum, written
}
