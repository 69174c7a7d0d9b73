package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

type jobsCmd struct {
	Limit int  `help:"At most so many, newest first; 0 = all." default:"50"`
	JSON  bool `name:"json" help:"Print a JSON array."`
}

// Run lists jobs.
func (c *jobsCmd) Run(a *app) error {
	jobs, does, more, err := c.list(a)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return a.printJSON(append([]pipeline.Job{}, jobs...))
	case len(jobs) == 0:
		fmt.Fprintf(a.out, "no jobs in %s yet; begin with: %s\n", a.desk(), a.command("run", "FILE"))
		return nil
	}
	table := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "JOB\tSTATUS\tSUBMITTED\tDOCUMENT\tPIPELINE")
	for _, job := range jobs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", job.ID, job.Status, job.CreatedAt.Time().Format(time.DateTime), job.Name, does[job.ID])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(a.out, "These are the newest %s; all with: %s\n", pipeline.Count(len(jobs)), a.command("jobs", "--limit", "0"))
	}
	return nil
}

// list reads the jobs of the tenant, newest first, and what each does; more says that there are others.
func (c *jobsCmd) list(a *app) (all []pipeline.Job, does map[pipeline.JobID]string, more bool, err error) {
	if a.storeless() {
		return nil, nil, false, nil
	}
	s, done, err := a.system()
	if err != nil {
		return nil, nil, false, err
	}
	defer done()
	if all, more, err = c.read(a, s); err != nil || c.JSON {
		return all, nil, more, err
	}
	does = map[pipeline.JobID]string{}
	for _, job := range all {
		does[job.ID] = doing(a.ctx, s, job)
	}
	return all, does, more, nil
}

// commandWidth is how much of a command the list shows.
const commandWidth = 60

// doing is a job's pipeline, or the command that it runs: one exec is not like another.
func doing(ctx context.Context, s *wiring.System, job pipeline.Job) string {
	if job.Pipeline != pipeline.ExecHandler {
		return job.Pipeline
	}
	d, err := view.Definition(ctx, s, job)
	if err != nil || len(d.Command) == 0 {
		return job.Pipeline // the list does not fail for want of it
	}
	return job.Pipeline + ": " + pipeline.Cut(oneLine(shown(d.Command)), commandWidth)
}

func (c *jobsCmd) read(a *app, s *wiring.System) (all []pipeline.Job, more bool, err error) {
	for cursor := ""; ; {
		jobs, next, err := s.Backend.Store.Jobs(a.ctx, a.Tenant, cursor, 100)
		if err != nil {
			return nil, false, err
		}
		all = append(all, jobs...)
		if c.Limit > 0 && len(all) > c.Limit {
			return all[:c.Limit], true, nil
		}
		if cursor = next; cursor == "" {
			return all, false, nil
		}
	}
}
