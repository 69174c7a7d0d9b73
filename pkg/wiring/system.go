package wiring

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"holdfast/pkg/call"
	"holdfast/pkg/finalize"
	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/reap"
	"holdfast/pkg/review"
	"holdfast/pkg/split"
	"holdfast/pkg/submit"
	"holdfast/pkg/triage"
	"holdfast/pkg/work"
)

// Config is what a process is told.
type Config struct {
	Tenant   string
	Worker   string // unique to the process
	Policy   pipeline.Policy
	Clock    pipeline.Clock
	Log      *slog.Logger
	Model    pipeline.Model // nil in a process that does not work
	InFlight int            // tries at once
	Claims   int            // chunks claimed at once; 0 = enough to keep InFlight busy
	Poll     time.Duration  // of the queues
	Grace    time.Duration  // for calls in flight when the process is asked to stop
	Jitter   func() float64
	NewID    func() string
	Kill     func() // what the poison markers of split and finalize call; nil = they are ignored
	Observe  func(work.Event)
	Stuck    func(pipeline.Ref)
}

// System is the steps over one backend, as one process uses them.
type System struct {
	Backend   *Backend
	Submitter *submit.Submitter
	Triage    *triage.Triage
	Opener    finalize.Opener
	Reaper    *reap.Reaper
	cfg       Config
}

// New wires the steps that every process has. [System.Worker] adds those of a worker.
func New(b *Backend, cfg Config) *System {
	cfg = cfg.withDefaults()
	s := &System{Backend: b, cfg: cfg}
	s.Opener = finalize.Opener{Store: b.Store, Queues: b.Queues, Clock: cfg.Clock, Policy: cfg.Policy}
	s.Submitter = submit.New(submit.Config{
		Store: b.Store, Blobs: b.Blobs, Queues: b.Queues, Opener: s.Opener, Reviewer: review.New(),
		Clock: cfg.Clock, Policy: cfg.Policy, Tenant: cfg.Tenant,
	})
	s.Triage = triage.New(triage.Config{Store: b.Store, Queues: b.Queues, Blobs: b.Blobs, Clock: cfg.Clock, Policy: cfg.Policy})
	s.Reaper = reap.New(reap.Config{
		Store: b.Store, Queues: b.Queues, Opener: s.Opener, Clock: cfg.Clock, Policy: cfg.Policy, Log: cfg.Log,
		Jitter: cfg.Jitter, Release: b.Release,
		Observe: func(row pipeline.Task, did string) {
			cfg.Observe(work.Event{What: did, Job: row.Job, Task: row.ID, Status: row.Status, Worker: cfg.Worker})
		},
	})
	return s
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = pipeline.NewRealClock()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.InFlight == 0 {
		c.InFlight = 32
	}
	if c.Claims == 0 {
		c.Claims = max(4, min(c.InFlight, 32))
	}
	if c.Poll == 0 {
		c.Poll = 500 * time.Millisecond
	}
	if c.Grace == 0 {
		c.Grace = 20 * time.Second
	}
	if c.NewID == nil {
		c.NewID = randomID
	}
	if c.Observe == nil {
		c.Observe = func(work.Event) {}
	}
	return c
}

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program first
	return hex.EncodeToString(b[:])
}

// Worker is the engine with its handlers, over the system's backend.
func (s *System) Worker() *work.Worker {
	b, cfg := s.Backend, s.cfg
	reviewer := review.New()
	caller := call.New(call.Config{
		Model: cfg.Model, Replies: b.Store, Blobs: b.Blobs, Budgets: b.Store, Limits: b.Store,
		Clock: cfg.Clock, Policy: cfg.Policy, InFlight: cfg.InFlight, Jitter: cfg.Jitter,
		OpenBudget: func(ctx context.Context, job pipeline.JobID) error {
			_, err := s.Submitter.OpenBudget(ctx, job)
			return err
		},
		Observe: func(task pipeline.Ref, answer pipeline.Answer) {
			e := work.Event{What: "answer", Job: task.Job, Task: task.ID, Worker: cfg.Worker, Cost: answer.Cost}
			switch {
			case answer.Reused:
				e.What = "reuse"
				cfg.Observe(e)
			case answer.Failure.None() && answer.Stop == nil:
				cfg.Observe(e)
			}
		},
	})
	stages := work.NewStages(work.StagesConfig{
		Model: cfg.Model.Info().ID(), Asker: caller, Reviewer: reviewer, Items: b.Store, Replies: b.Store, Feed: b.Store,
		Blobs: b.Blobs, Clock: cfg.Clock, Policy: cfg.Policy,
	})
	splitter := split.New(split.Config{
		Items: b.Store, Tasks: b.Store, Blobs: b.Blobs, Ingest: ingest.Text, Clock: cfg.Clock, Policy: cfg.Policy,
		Ring: b.Queues.Ring, Kill: cfg.Kill,
	})
	finalizer := finalize.New(finalize.Config{Store: b.Store, Blobs: b.Blobs, Clock: cfg.Clock, Policy: cfg.Policy, Kill: cfg.Kill})
	return work.New(work.Config{
		Worker: cfg.Worker, Store: b.Store, Reaper: s.Reaper, Opener: s.Opener,
		Sources: []work.Source{
			{Name: pipeline.ControlQueue, Queue: b.Queues.Control, Slots: 2},
			{Name: pipeline.WorkQueue, Queue: b.Queues.Work, Slots: cfg.Claims, Batch: 1, Door: caller.Wait},
		},
		Handlers: map[pipeline.TaskKind]pipeline.Handler{
			pipeline.TaskSplit: splitter, pipeline.TaskWork: stages, pipeline.TaskFinalize: finalizer,
		},
		Clock: cfg.Clock, Policy: cfg.Policy, Log: cfg.Log, Poll: cfg.Poll, Grace: cfg.Grace, NewID: cfg.NewID,
		Jitter: cfg.Jitter, Observe: cfg.Observe, Stuck: cfg.Stuck,
	})
}

// Policy is the policy that the process works by.
func (s *System) Policy() pipeline.Policy { return s.cfg.Policy }
