package wiring

import (
	"context"
	"errors"

	"holdfast/pkg/call"
	"holdfast/pkg/finalize"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/review"
	"holdfast/pkg/split"
	"holdfast/pkg/submit"
	"holdfast/pkg/work"
)

// Worker is the engine with its handlers, over the system's backend.
func (s *System) Worker() *work.Worker {
	b, cfg := s.Backend, s.cfg
	handlers, door := s.workHandlers()
	return work.New(work.Config{
		Worker: cfg.Worker, Store: b.Store, Reaper: s.Reaper, Opener: s.Opener,
		Sources: []work.Source{
			{Name: pipeline.ControlQueue, Queue: b.Queues.Control, Slots: 2},
			{Name: pipeline.WorkQueue, Queue: s.chosen(b.Queues.Work, handlers), Slots: cfg.Claims, Batch: 1, Door: door},
		},
		Handlers: s.taskHandlers(handlers),
		Clock:    cfg.Clock, Policy: cfg.Policy, Log: cfg.Log, Poll: cfg.Poll, Grace: cfg.Grace, NewID: cfg.NewID,
		Jitter: cfg.Jitter, Observe: cfg.Observe, Skew: b.Skew, Busy: cfg.Busy, Stuck: cfg.Stuck, Gone: cfg.Gone,
	})
}

// taskHandlers are what works on each kind of task. A process that reads no documents splits none.
func (s *System) taskHandlers(chunks pipeline.Handler) map[pipeline.TaskKind]pipeline.Handler {
	b, cfg := s.Backend, s.cfg
	handlers := map[pipeline.TaskKind]pipeline.Handler{
		pipeline.TaskWork:     chunks,
		pipeline.TaskFinalize: finalize.New(finalize.Config{Store: b.Store, Blobs: b.Blobs, Clock: cfg.Clock, Policy: cfg.Policy, Kill: cfg.Kill}),
	}
	if cfg.Read != nil {
		handlers[pipeline.TaskSplit] = split.New(split.Config{
			Items: b.Store, Tasks: b.Store, Blobs: b.Blobs, Ingest: cfg.Read,
			Clock: cfg.Clock, Policy: cfg.Policy, Ring: b.Queues.Ring, Kill: cfg.Kill,
		})
	}
	return handlers
}

// workHandlers are what works on chunks, by the model or handler that a job names, and the door of the queue: with
// several, tasks are received while any of them has room.
func (s *System) workHandlers() (work.ByModel, func(context.Context) error) {
	cfg := s.cfg
	handlers := work.ByModel{}
	slots := call.NewSlots(cfg.InFlight)
	var doors []func(context.Context) error
	reviewer := review.New()
	add := func(model pipeline.Model) {
		caller := s.caller(model, slots)
		doors = append(doors, caller.Wait)
		handlers[model.Info().ID()] = s.stages(model.Info().ID(), caller, reviewer)
	}
	if cfg.Model != nil {
		add(cfg.Model)
	}
	for id, function := range cfg.Functions {
		add(call.Handler(id, function))
	}
	for id, handler := range cfg.Handlers {
		handlers[id] = handler(s.Backend)
		doors = append(doors, func(ctx context.Context) error { return context.Cause(ctx) })
	}
	return handlers, anyOf(doors)
}

// anyOf waits until one of the doors is open.
func anyOf(doors []func(context.Context) error) func(context.Context) error {
	if len(doors) == 1 {
		return doors[0]
	}
	return func(ctx context.Context) error {
		if len(doors) == 0 {
			return nil
		}
		wait, stop := context.WithCancel(ctx)
		defer stop()
		open := make(chan error, len(doors))
		var group pipeline.Group
		for _, door := range doors {
			group.Go(func() { open <- door(wait) })
		}
		err := <-open
		stop()
		group.Wait()
		return err
	}
}

// caller asks a model, or runs a function, within the slots that all of the process share.
func (s *System) caller(model pipeline.Model, slots call.Slots) *call.Caller {
	b, cfg := s.Backend, s.cfg
	return call.New(call.Config{
		Model: model, Replies: b.Store, Blobs: b.Blobs, Budgets: b.Store, Limits: b.Store,
		Clock: cfg.Clock, Policy: cfg.Policy, Slots: slots, Jitter: cfg.Jitter,
		OpenBudget: func(ctx context.Context, job pipeline.JobID) error {
			_, err := s.Submitter.OpenBudget(ctx, job)
			return err
		},
		EndJob: s.endJob,
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
}

// endJob cancels a job whose spending is not bounded any more; one that is ending anyway is left so.
func (s *System) endJob(ctx context.Context, job pipeline.JobID, reason string) error {
	_, err := s.Submitter.Cancel(ctx, job, reason)
	if errors.Is(err, submit.ErrStands) {
		return nil
	}
	return err
}

func (s *System) stages(id string, asker pipeline.Asker, reviewer pipeline.Reviewer) *work.Stages {
	b, cfg := s.Backend, s.cfg
	return work.NewStages(work.StagesConfig{
		Model: id, Asker: asker, Reviewer: reviewer, Items: b.Store, Replies: b.Store, Feed: b.Store,
		Blobs: b.Blobs, Clock: cfg.Clock, Policy: cfg.Policy,
	})
}
