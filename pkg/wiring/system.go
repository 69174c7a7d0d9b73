package wiring

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"holdfast/pkg/finalize"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/reap"
	"holdfast/pkg/review"
	"holdfast/pkg/submit"
	"holdfast/pkg/triage"
	"holdfast/pkg/work"
)

// Config is what a process is told.
type Config struct {
	Tenant string
	Worker string // unique to the process
	Policy pipeline.Policy
	Clock  pipeline.Clock
	Log    *slog.Logger
	Model  pipeline.Model // nil in a process that asks none
	// Functions work on the chunks of jobs whose definition names them as its handler, by name@version: with the tries,
	// caps, stored answers and money of calls.
	Functions map[string]pipeline.Function
	// Handlers are work that keeps its own stages and checkpoints, by the name@version that a definition names.
	Handlers map[string]func(*Backend) pipeline.Handler
	// Read makes text of a document, as ingest does; nil in a process that splits none.
	Read     func(ctx context.Context, name string, source []byte) (pipeline.Document, error)
	InFlight int           // tries at once
	Claims   int           // chunks claimed at once; 0 = enough to keep InFlight busy
	Poll     time.Duration // of the queues
	Grace    time.Duration // for calls in flight when the process is asked to stop; 0 = for the longest
	Jitter   func() float64
	NewID    func() string
	Kill     func() // what the poison markers of split and finalize call; nil = they are ignored
	Observe  func(work.Event)
	Busy     func(bool) // told when the first task is worked on, and when none is any more
	Stuck    func(pipeline.Ref)
	Gone     func(error) // a queue is not there any more
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
		Jitter: cfg.Jitter, Release: b.Release, Skew: b.Skew,
		Keeper: b.Keeper, KeepReplies: s.keepReplies,
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
		c.Grace = c.Policy.LongestTry()
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

// ReplyKeys are the keys of all replies that a job may have stored, from its rows and items.
func (s *System) ReplyKeys(ctx context.Context, job pipeline.Job, rows []pipeline.Task, items []pipeline.Item) ([]pipeline.ReplyKey, error) {
	return s.stages(job.Model, nil, review.New()).Keys(ctx, job, rows, items)
}

// keepReplies reads every reply of a job, which is what keeps one from its end.
func (s *System) keepReplies(ctx context.Context, job pipeline.Job) error {
	store := s.Backend.Store
	rows, err := pipeline.AllTasks(ctx, store, job.ID)
	if err != nil {
		return err
	}
	items, err := pipeline.AllItems(ctx, store, job.ID, "")
	if err != nil {
		return err
	}
	keys, err := s.ReplyKeys(ctx, job, rows, items)
	if err != nil {
		return err
	}
	return pipeline.EachReply(ctx, store, s.cfg.Clock, keys, func(pipeline.Reply) error { return nil })
}

// Policy is the policy that the process works by.
func (s *System) Policy() pipeline.Policy { return s.cfg.Policy }

// Clock is the process's time.
func (s *System) Clock() pipeline.Clock { return s.cfg.Clock }
