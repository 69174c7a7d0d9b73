package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

type submitCmd struct {
	documentFlags
	modelFlags
	Start bool `help:"Start as soon as the document is split, without looking at the plan."`
}

// Run submits a document.
func (c *submitCmd) Run(a *app) error {
	if err := c.check(c.Pipeline, c.Profile, c.modelFlags); err != nil {
		return err
	}
	model, err := c.model("cli", a.clock, nil)
	if err != nil {
		return err
	}
	sub, err := c.submission(a, model.Info())
	if err != nil {
		return err
	}
	sub.Hold = !c.Start
	s, done, err := a.system()
	if err != nil {
		return err
	}
	defer done()
	job, stood, err := s.Submitter.Submit(a.ctx, sub)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, job.ID)
	note := "submitted; " + a.splits(a.workerFor(job.Model, c.where()...))
	if stood {
		note = fmt.Sprintf("the same submission is job %s already: %s", job.ID, job.Status)
	}
	fmt.Fprintf(a.err, "%s\n", note)
	if job.Status == pipeline.JobPlanned {
		fmt.Fprintf(a.err, "once it is split, look at the plan with: %s; start it with: %s\n", a.command("status", string(job.ID)), a.command("resume", string(job.ID)))
	}
	return nil
}

// jobArg is the job that a command is about.
type jobArg struct {
	Job string `arg:"" help:"The job's id, or the beginning of it."`
}

// find is the job whose id is, or begins with, the argument.
func (j jobArg) find(ctx context.Context, a *app, s *wiring.System) (pipeline.Job, error) {
	job, err := s.Backend.Store.Job(ctx, pipeline.JobID(j.Job))
	if err == nil && job.Tenant != a.Tenant {
		return pipeline.Job{}, j.unknown(a) // whose it is stays untold
	}
	if !errors.Is(err, pipeline.ErrNotFound) {
		return job, err
	}
	var found []pipeline.Job
	for cursor := ""; ; {
		jobs, next, err := s.Backend.Store.Jobs(ctx, a.Tenant, cursor, 100)
		if err != nil {
			return job, err
		}
		for _, other := range jobs {
			if strings.HasPrefix(string(other.ID), j.Job) {
				found = append(found, other)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return job, j.unknown(a)
	}
	return job, usage("%d jobs begin with %q; write more of the id: %s", len(found), j.Job, a.command("jobs"))
}

func (j jobArg) unknown(a *app) error {
	return usage("there is no job %q in %s; list them with: %s", j.Job, a.desk(), a.command("jobs"))
}

// with opens the system and finds the job.
func (j jobArg) with(a *app, do func(s *wiring.System, job pipeline.Job) error) error {
	s, done, err := a.existing()
	if err != nil {
		return err
	}
	defer done()
	job, err := j.find(a.ctx, a, s)
	if err != nil {
		return err
	}
	return do(s, job)
}

type watchCmd struct{ jobArg }

// Run follows a job until it ends; its exit code is the job's.
func (c *watchCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		screen := newScreen(a, false)
		model, err := view.Model(a.ctx, s, job.ID)
		if err != nil {
			return err
		}
		definition, err := view.Definition(a.ctx, s, job)
		if err != nil {
			return err
		}
		looks, seen, at := a.looks(), progress{Progress: view.Progress{Job: job}}, a.clock.Now()
		for !job.Status.Ended() {
			now, p, err := a.watched(s, job.ID, definition)
			busy, err := looks.took(err, a.clock.Mono())
			switch {
			case err != nil:
				return err
			case busy:
				seen.AsOf = at
			default:
				job, seen, at = now, p, a.clock.Now()
			}
			screen.show(seen, model)
			if !job.Status.Ended() && a.clock.Sleep(a.drain, looks.wait) != nil {
				return codeError{code: exitInterrupted}
			}
		}
		screen.clear()
		o, err := a.outcomeOf(a.ctx, s, job)
		if err != nil {
			return err
		}
		screen.lines(o.lines()...)
		return codeError{code: exitCode(job.Status)}.orNil()
	})
}

// watched reads a job, how far it is and what is spent on it, whoever works on it.
func (a *app) watched(s *wiring.System, id pipeline.JobID, definition pipeline.Definition) (pipeline.Job, progress, error) {
	job, err := s.Backend.Store.Job(a.ctx, id)
	if err != nil {
		return job, progress{}, err
	}
	p, err := progressOf(a.ctx, s, job, definition)
	if err != nil {
		return job, p, err
	}
	budget, err := s.Backend.Store.Budget(a.ctx, id)
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) { // nobody has needed any yet
		return job, p, err
	}
	p.Cost, p.Setbacks = budget.Spent, a.typeableSetbacks(p.Setbacks)
	return job, p, nil
}
