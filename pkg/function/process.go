// Package function is what the processes of a deployment share: it makes one of an environment, answers the events of
// queues and of the schedule, and keeps the process that polls.
//
// It may decide how much of an event's time is used, and when a process drains. It may not decide anything about jobs,
// tasks or calls: each event is handed to a step.
package function

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/reap"
	"holdfast/pkg/sqsqueue"
	"holdfast/pkg/telemetry"
	"holdfast/pkg/wiring"
	"holdfast/pkg/work"
)

// Reader makes text of a document: only a process that splits has one.
type Reader func(ctx context.Context, name string, source []byte) (pipeline.Document, error)

// Process is one process of a deployment.
type Process struct {
	Env     config.Environment
	Model   pipeline.ModelInfo // that jobs are asked of; the zero one in a process that knows none
	System  *wiring.System
	Clock   pipeline.Clock
	Log     *slog.Logger
	Meter   *telemetry.Meter
	Metrics io.Writer // where counts are written

	worker *work.Worker
	busy   *busy
	heart  heart
	events sync.WaitGroup // that are being answered
	rest   rest

	drain context.Context // done when the process was asked to end
	hard  context.Context // done when what is in flight must be dropped
	begin context.CancelFunc
	drop  context.CancelFunc
}

// Parts are what a process is made of, beside its environment.
type Parts struct {
	Backend *wiring.Backend
	Model   pipeline.Model // nil in a process that asks none
	Read    Reader         // nil in a process that splits no document
	Clock   pipeline.Clock
	Log     *slog.Logger
	Metrics io.Writer
	NewID   func() string
	Jitter  func() float64
	Kill    func() // the end of the process at once: what a handler that ignores everything comes to
}

// New makes a process. It starts nothing.
func New(env config.Environment, parts Parts) (*Process, error) {
	if env.Process == config.Control || env.Process == config.Work {
		if err := env.Policy.CheckFunction(); err != nil {
			return nil, fmt.Errorf("%s: %w", config.PolicyVar, err)
		}
	}
	p := &Process{
		Env: env, Clock: parts.Clock, Log: parts.Log, Meter: telemetry.NewMeter(env.Stack), Metrics: cmp.Or[io.Writer](parts.Metrics, io.Discard), busy: &busy{},
	}
	if parts.Model != nil {
		p.Model = parts.Model.Info()
	}
	p.rest.close = idleClosers(parts)
	p.awake()
	p.beat()
	p.drain, p.begin = context.WithCancel(context.Background())
	p.hard, p.drop = context.WithCancel(context.Background())
	back := *parts.Backend
	back.Store = telemetry.Store(back.Store, p.Meter)
	p.System = wiring.New(&back, wiring.Config{
		Worker: workerName(env), Policy: env.Policy, Clock: p.Clock, Log: p.Log, Model: parts.Model, Read: parts.Read,
		InFlight: env.InFlight, Claims: p.claims(), Poll: 20 * time.Second, Grace: p.grace(), NewID: parts.NewID, Jitter: parts.Jitter,
		Observe: p.observe, Kill: parts.Kill, Busy: p.busy.set,
		Stuck: func(ref pipeline.Ref) {
			p.Log.Error("a handler ignores that its work was dropped; this process ends", "task", ref.String())
			if parts.Kill != nil {
				parts.Kill()
			}
		},
	})
	switch env.Process {
	case config.Control, config.Work, config.Workd:
		p.worker = p.System.Worker()
	}
	return p, nil
}

// claims is how many tasks of a queue are worked on at once: of an event, all that it brings.
func (p *Process) claims() int {
	if p.Env.Process == config.Workd {
		return p.Env.Claims
	}
	return pipeline.MaxBatch
}

// grace is for how long calls in flight may finish after a drain began: as long as the longest may take, but for a
// process that is killed after its stop time, which also has to write its endings.
func (p *Process) grace() time.Duration {
	grace := p.Env.Policy.LongestTry()
	if p.Env.Process == config.Workd {
		grace = max(time.Millisecond, min(grace, p.Env.StopTime-p.Env.Policy.ClaimTTL))
	}
	return grace
}

func (p *Process) observe(e work.Event) {
	switch e.What {
	case "try":
		if !e.Kind.Free() {
			p.Meter.Add(telemetry.PaidCalls, 1)
			p.Meter.Add(telemetry.CellsFinished, 0) // an alarm compares the two
		}
	case "stage":
		p.Meter.Add(telemetry.CellsFinished, e.N)
	case reap.Unclaimable:
		p.Meter.Add(telemetry.Unclaimable, 1)
	}
}

// write writes down what was counted.
func (p *Process) write(ctx context.Context) {
	if err := p.Meter.Write(p.Metrics, p.Clock.Now()); err != nil {
		p.Log.WarnContext(ctx, "metrics were not written", "error", err)
	}
}

// tellEvery is how often the counts of an event are written while it goes on: what is killed in the middle of it, at its
// time-out or for want of memory, has told what it paid by then.
const tellEvery = 10 * time.Second

// telling writes down what is counted during an event, until stop, which writes the rest.
func (p *Process) telling(ctx context.Context) (stop func()) {
	during, cancel := context.WithCancel(ctx)
	var group pipeline.Group
	group.Go(func() {
		for p.Clock.Sleep(during, tellEvery) == nil {
			p.write(ctx)
		}
	})
	return func() {
		cancel()
		group.Wait()
		p.write(ctx)
	}
}

// RandomID is 16 random bytes, in hex: nobody can guess it.
func RandomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program first
	return hex.EncodeToString(b[:])
}

// workerName is unique to the process, and says where its log is.
func workerName(env config.Environment) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program first
	name := string(env.Process) + "-" + hex.EncodeToString(b[:])
	if stream := os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME"); stream != "" {
		name += "-" + stream[max(0, len(stream)-8):]
	}
	return name
}

// OpenBackend opens where the environment says that state lives.
func OpenBackend(ctx context.Context, env config.Environment) (*wiring.Backend, error) {
	if env.Backend == config.EmbeddedBackend {
		return openEmbedded(ctx, env)
	}
	return wiring.OpenAWS(ctx, wiring.AWS{
		Stack: env.Stack, Endpoint: env.Endpoint, Bucket: env.Bucket, Inflight: env.InFlight + 16,
		Control: sqsqueue.Addresses{Queue: env.Queues.Control, Dead: env.Queues.ControlDead},
		Work:    sqsqueue.Addresses{Queue: env.Queues.Work, Dead: env.Queues.WorkDead},
	}, env.Policy)
}

// Logger writes one JSON object a line.
func Logger(w io.Writer, env config.Environment) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: env.LogLevel})).With("process", strings.ToLower(string(env.Process)))
}
