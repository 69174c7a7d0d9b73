package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/triage"
	"holdfast/pkg/wiring"
)

func parseTask(text string, job pipeline.Job) (pipeline.TaskID, error) {
	task, err := pipeline.ParseTask(text, job)
	if err != nil {
		return "", usage("%v", err)
	}
	return task, nil
}

type whyCmd struct {
	jobArg
	Task string `arg:"" optional:"" name:"chunk" help:"A chunk's number, split, or finalize. Without it: what is missing from the job and why."`
	JSON bool   `name:"json" help:"Print one JSON object."`
}

// Run tells why.
func (c *whyCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		story, err := c.story(a, s, job)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(story)
		}
		_, err = fmt.Fprintln(a.out, a.typeable(strings.TrimRight(story.Text(), "\n")))
		return err
	})
}

// story is what triage tells.
type story interface{ Text() string }

func (c *whyCmd) story(a *app, s *wiring.System, job pipeline.Job) (story, error) {
	if c.Task == "" {
		return s.Triage.WhyJob(a.ctx, job.ID)
	}
	task, err := parseTask(c.Task, job)
	if err != nil {
		return nil, err
	}
	told, err := s.Triage.Why(a.ctx, job.ID, task)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil, usage("job %s has no %s; it is %s. See what it has with: %s", job.ID, task, job.Status, a.command("status", string(job.ID)))
	}
	return told, err
}

type redriveCmd struct {
	jobArg
	Tasks []string `arg:"" optional:"" name:"chunk" help:"Chunks; without any, all that are abandoned or have failed cells."`
	Most  string   `name:"max-cost" help:"The job's ceiling afterwards, in dollars, at most: what it does not cover is not asked." placeholder:"USD"`
	Dry   bool     `name:"dry-run" help:"Only show what it would give back, and what that may cost."`
}

// Run redrives.
func (c *redriveCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		var tasks []pipeline.TaskID
		for _, text := range c.Tasks {
			task, err := parseTask(text, job)
			if err != nil {
				return err
			}
			tasks = append(tasks, task)
		}
		most, err := parseMoney(c.Most)
		if err != nil {
			return usage("--max-cost: %v", err)
		}
		if c.Dry && most > 0 {
			return usage("--dry-run shows the most that a redrive may cost; --max-cost is for the redrive itself")
		}
		do := s.Triage.Redrive
		switch {
		case c.Dry:
			do = s.Triage.Preview
		case most > 0:
			do = func(ctx context.Context, id pipeline.JobID, tasks ...pipeline.TaskID) (triage.Redriven, error) {
				return s.Triage.RedriveWithin(ctx, id, most, tasks...)
			}
		}
		done, err := do(a.ctx, job.ID, tasks...)
		c.print(a, job, done)
		return err
	})
}

func (c *redriveCmd) print(a *app, job pipeline.Job, r triage.Redriven) {
	was := "redriven"
	if c.Dry {
		was = "would be redriven"
	}
	for _, part := range r.Tasks {
		fmt.Fprintf(a.out, "%s %s from stage %d: %s, at most %s\n", part.Task, was, part.Accepted+1, pipeline.CountOf(part.Calls, "call", "calls"), part.Cost)
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(a.out, "%s is not: %s\n", skipped.Task, skipped.Why)
	}
	if len(r.Tasks) > 0 {
		fmt.Fprintf(a.out, "%s %s; the ceilings rise by %s and %s. Stored replies are not paid again.\n",
			pipeline.CountOf(len(r.Tasks), "task", "tasks"), was, pipeline.CountOf(r.Tries, "try", "tries"), r.Cost)
	}
	if len(r.Tasks) > 0 && !c.Dry {
		fmt.Fprintf(a.out, "A worker goes on with it: %s; or run the same document again.\n", a.workerFor(job.Model))
	}
}

type lettersCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
}

// Run lists the tasks that have dead letters, those of this tenant.
func (c *lettersCmd) Run(a *app) error {
	s, done, err := a.existing()
	if err != nil {
		return err
	}
	defer done()
	all, err := s.Triage.DeadLetters(a.ctx)
	if err != nil {
		return err
	}
	letters := slices.DeleteFunc(all, func(l triage.Letter) bool { return l.Row != nil && l.Row.Tenant != a.Tenant })
	if c.JSON {
		return a.printJSON(append([]triage.Letter{}, letters...))
	}
	if len(letters) == 0 {
		fmt.Fprintln(a.out, "no dead letters")
		return nil
	}
	table := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "QUEUE\tJOB\tTASK\tITEM\tLETTERS\tSTALE\tMEANING\tEXPIRES")
	sum, stale := 0, 0
	for _, l := range letters {
		sum += l.Letters
		mark := "-"
		if l.Stale {
			stale++
			mark = "stale"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", l.Queue, l.Job, orDash(string(l.Task)), orDash(pipeline.Cut(oneLine(l.Item), itemWidth)), l.Letters, mark, l.Meaning, l.Expires.Time().Format("2006-01-02 15:04"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s in %s; %s stale: the task goes on or has ended otherwise since.\n",
		pipeline.CountOf(sum, "dead letter", "dead letters"), pipeline.CountOf(len(letters), "line", "lines"), pipeline.Count(stale))
	if stale < len(letters) {
		fmt.Fprintf(a.out, "Every attempt and its reason: %s; give attempts back with: %s\n", a.command("why", "JOB", "CHUNK"), a.command("redrive", "JOB"))
	}
	return nil
}

// itemWidth is how much of an item a list shows.
const itemWidth = 60

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// printJSON prints one value for programs.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
