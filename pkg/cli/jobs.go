package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

type submitCmd struct {
	documentFlags
	modelFlags
	Start bool `help:"Start as soon as the document is split, without looking at the plan."`
}

// Run submits a document.
func (c *submitCmd) Run(a *app) error {
	model, err := c.model("cli", a.clock, nil)
	if err != nil {
		return err
	}
	sub, err := c.submission(model.Info())
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
	note := "submitted; a worker splits it: holdfast worker"
	if stood {
		note = fmt.Sprintf("the same submission is job %s already: %s", job.ID, job.Status)
	}
	fmt.Fprintf(a.err, "%s\n", note)
	if job.Status == pipeline.JobPlanned {
		fmt.Fprintf(a.err, "look at the plan with: holdfast status %s; start it with: holdfast resume %s\n", job.ID, job.ID)
	}
	return nil
}

type jobsCmd struct {
	Limit int `help:"At most so many, newest first." default:"50"`
}

// Run lists jobs.
func (c *jobsCmd) Run(a *app) error {
	if a.storeless() {
		fmt.Fprintf(a.out, "no jobs in %s yet; begin with: holdfast run FILE\n", a.place())
		return nil
	}
	s, done, err := a.system()
	if err != nil {
		return err
	}
	defer done()
	table := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	shown := 0
	for cursor := ""; shown < c.Limit; {
		jobs, next, err := s.Backend.Store.Jobs(a.ctx, a.Tenant, cursor, min(100, c.Limit-shown))
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if shown == 0 {
				fmt.Fprintln(table, "JOB\tSTATUS\tSUBMITTED\tDOCUMENT\tPIPELINE")
			}
			shown++
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", job.ID, job.Status, job.CreatedAt.Time().Format(time.DateTime), job.Name, job.Pipeline)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if shown == 0 {
		fmt.Fprintf(a.out, "no jobs in %s yet; begin with: holdfast run FILE\n", a.place())
	}
	return table.Flush()
}

// jobArg is the job that a command is about.
type jobArg struct {
	Job string `arg:"" help:"The job's id, or the beginning of it."`
}

// find is the job whose id is, or begins with, the argument.
func (j jobArg) find(ctx context.Context, a *app, s *wiring.System) (pipeline.Job, error) {
	job, err := s.Backend.Store.Job(ctx, pipeline.JobID(j.Job))
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
		return job, usage("there is no job %q in %s; list them with: holdfast jobs", j.Job, a.place())
	}
	return job, usage("%d jobs begin with %q; write more of the id: holdfast jobs", len(found), j.Job)
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

type statusCmd struct {
	jobArg
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run shows where a job stands.
func (c *statusCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		definition, err := definitionOf(a.ctx, s, job)
		if err != nil {
			return err
		}
		p, err := progressOf(a.ctx, s, job, definition)
		if err != nil {
			return err
		}
		if c.JSON {
			enc := json.NewEncoder(a.out)
			enc.SetIndent("", "  ")
			return enc.Encode(p)
		}
		screen := newScreen(a, false)
		screen.say("job %s: %s", job.ID, job.Status)
		screen.lines(indented("  ", statusLines(a.ctx, s, p)...)...)
		return nil
	})
}

func statusLines(ctx context.Context, s *wiring.System, p progress) []string {
	job := p.Job
	lines := []string{fmt.Sprintf("document %s, pipeline %s, model %s", job.Name, job.Pipeline, job.Model)}
	if !job.Reason.None() {
		lines = append(lines, "reason: "+job.Reason.String())
	}
	if !job.Status.Ended() && p.Chunks == 0 {
		return append(lines, "not split yet; a worker does that: holdfast worker")
	}
	if plan, err := s.Submitter.Plan(ctx, job.ID); err == nil && job.Status == pipeline.JobPlanned {
		lines = append(lines, submit.Lines(plan)...)
		return append(lines, fmt.Sprintf("start it with: holdfast resume %s", job.ID))
	}
	lines = append(lines, fmt.Sprintf("cells %s of %s, chunks %d of %d ended, %d claimed, %d deferrals", thousands(p.Done), thousands(p.Cells), p.Ended, p.Chunks, p.Claimed, p.Deferrals))
	for _, status := range []pipeline.TaskStatus{pipeline.TaskPending, pipeline.TaskParked, pipeline.TaskAbandoned, pipeline.TaskCancelled} {
		if n := p.Status[status]; n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", status, count(n, "chunk", "chunks")))
		}
	}
	for _, task := range p.Unclaimable {
		lines = append(lines, fmt.Sprintf("unclaimable: %s was rung more than %d times and never claimed", task, s.Policy().MaxRings))
	}
	if budget, err := s.Backend.Store.Budget(ctx, job.ID); err == nil {
		lines = append(lines, fmt.Sprintf("spent %s of a ceiling of %s, %s reserved", budget.Spent, budget.Ceiling, budget.Ceiling-budget.Spent-budget.Remaining))
	}
	return lines
}

type watchCmd struct{ jobArg }

// Run follows a job until it ends; its exit code is the job's.
func (c *watchCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		screen := newScreen(a, false)
		model, _ := modelOf(a.ctx, s, job.ID)
		definition, err := definitionOf(a.ctx, s, job)
		if err != nil {
			return err
		}
		for !job.Status.Ended() {
			p, err := progressOf(a.ctx, s, job, definition)
			if err != nil {
				return err
			}
			if budget, err := s.Backend.Store.Budget(a.ctx, job.ID); err == nil {
				p.Cost = budget.Spent
			}
			screen.show(p, model)
			if a.clock.Sleep(a.drain, lookEvery) != nil {
				return codeError{code: exitInterrupted}
			}
			if job, err = s.Backend.Store.Job(a.ctx, job.ID); err != nil {
				return err
			}
		}
		screen.clear()
		o, err := outcomeOf(a.ctx, s, job)
		if err != nil {
			return err
		}
		screen.lines(o.lines()...)
		return codeError{code: exitCode(job.Status)}.orNil()
	})
}
