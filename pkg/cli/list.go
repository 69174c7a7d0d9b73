package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"holdfast/pkg/pipeline"
)

type jobsCmd struct {
	Limit int  `help:"At most so many, newest first; 0 = all." default:"50"`
	JSON  bool `name:"json" help:"Print a JSON array."`
}

// Run lists jobs.
func (c *jobsCmd) Run(a *app) error {
	jobs, more, err := c.list(a)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return a.printJSON(append([]pipeline.Job{}, jobs...))
	case len(jobs) == 0:
		fmt.Fprintf(a.out, "no jobs in %s yet; begin with: holdfast run FILE\n", a.place())
		return nil
	}
	table := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "JOB\tSTATUS\tSUBMITTED\tDOCUMENT\tPIPELINE")
	for _, job := range jobs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", job.ID, job.Status, job.CreatedAt.Time().Format(time.DateTime), job.Name, job.Pipeline)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(a.out, "These are the newest %s; all with: holdfast jobs --limit 0\n", pipeline.Count(len(jobs)))
	}
	return nil
}

// list reads the jobs of the tenant, newest first; more says that there are others.
func (c *jobsCmd) list(a *app) (all []pipeline.Job, more bool, err error) {
	if a.storeless() {
		return nil, false, nil
	}
	s, done, err := a.system()
	if err != nil {
		return nil, false, err
	}
	defer done()
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
