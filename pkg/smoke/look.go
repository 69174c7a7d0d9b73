package smoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

// errNobody says that no worker of the stack takes what is in a queue.
var errNobody = errors.New("no worker")

// errPatience says that what was waited for did not come.
var errPatience = errors.New("it did not come")

func (c *canary) setup() Setup {
	return Setup{Backend: c.cfg.Backend, Policy: c.cfg.Policy, Clock: c.cfg.Clock}
}

func (c *canary) doorbell() pipeline.Queue { return c.setup().doorbell() }

// deafTo is the stack's queues for a worker that hears another doorbell.
func (c *canary) deafTo(doorbell pipeline.Queue) pipeline.Queues {
	return c.setup().queues(bells{c.cfg.Backend.Queues.Work, doorbell})
}

// over is the steps over the stack with other queues.
func (c *canary) over(name string, queues pipeline.Queues, model pipeline.Model) *wiring.System {
	return c.setup().newSystem(queues, model, Orders{Worker: name, InFlight: inFlight})
}

// until looks until done says so, for at most so long.
func (c *canary) until(ctx context.Context, within time.Duration, what string, done func() (bool, error)) error {
	for begin := c.cfg.Clock.Mono(); ; {
		is, err := done()
		switch {
		case err != nil && !errors.Is(err, pipeline.ErrBusy):
			return err
		case err == nil && is:
			return nil
		case c.cfg.Clock.Mono()-begin > within:
			return fmt.Errorf("%w within %v: %s", errPatience, within, what)
		}
		if err := c.cfg.Clock.Sleep(ctx, lookEvery); err != nil {
			return fmt.Errorf("stopped while it waited for this: %s", what)
		}
	}
}

// submit submits a document of the canary's own, and waits until the stack has split it. A held one is born parked: its
// chunks are nobody's until it is started.
func (c *canary) submit(ctx context.Context, marker string, model pipeline.ModelInfo, hold bool) (pipeline.Job, error) {
	name := fmt.Sprintf("smoke-%s-%s.txt", strings.ReplaceAll(c.check, " ", "-"), c.cfg.Nonce)
	text := c.cfg.Text
	if marker != "" {
		middle := len(text) / 2 // of the middle chunk, not where the next one begins with its end
		middle += strings.Index(text[middle:], "\n") + 1
		text = text[:middle] + "The parties agree to " + marker + " each other.\n" + text[middle:]
	}
	definition := c.cfg.Definition
	definition.Title = name // so that it is this job's alone, and goes with it
	if ctx.Err() != nil {
		return pipeline.Job{}, context.Cause(ctx)
	}
	// Begun, it is not given up in the middle: what was written would be nobody's to remove.
	job, _, err := c.system.Submitter.Submit(context.WithoutCancel(ctx), submit.Submission{
		Name: name, Source: []byte("Canary " + name + "\n\n" + text), Definition: definition, Model: model, Hold: hold,
		Fresh: true, // no reply of an earlier check: each has its own calls to make
	})
	if err != nil {
		return job, err
	}
	c.jobs = append(c.jobs, job)
	split := pipeline.Ref{Job: job.ID, ID: pipeline.SplitTask}
	var row pipeline.Task
	look := func() (bool, error) {
		row, err = c.cfg.Backend.Store.Task(ctx, split)
		return row.Status.Ended() || row.Generation > 0, err
	}
	if err := c.until(ctx, min(takenWithin, c.cfg.Patience), "the split of a document was claimed", look); err != nil {
		if errors.Is(err, errPatience) {
			return job, fmt.Errorf("%w takes from the control queue (%w). Are the stack's functions deployed, and is their event source enabled? Without functions, start a worker: holdfast worker", errNobody, err)
		}
		return job, err
	}
	err = c.until(ctx, c.cfg.Patience, "the split of a document ended", func() (bool, error) {
		row, err = c.cfg.Backend.Store.Task(ctx, split)
		return row.Status.Ended(), err
	})
	if err == nil && row.Status != pipeline.TaskDone {
		err = fmt.Errorf("the split of job %s is %s: %s", job.ID, row.Status, row.Reason)
	}
	return job, err
}

// ended waits until a job and all of its rows have ended: finalize ends its own row after the job.
func (c *canary) ended(ctx context.Context, id pipeline.JobID) (job pipeline.Job, err error) {
	err = c.until(ctx, c.cfg.Patience, fmt.Sprintf("job %s ended", id), func() (bool, error) {
		if job, err = c.cfg.Backend.Store.Job(ctx, id); err != nil || !job.Status.Ended() {
			return false, err
		}
		rows, err := pipeline.AllTasks(ctx, c.cfg.Backend.Store, id)
		open := slices.ContainsFunc(rows, func(row pipeline.Task) bool { return !row.Status.Ended() })
		return !open, err
	})
	return job, err
}

// whole says that a job ended with every cell answered or gated: by its result, and by its rows.
func (c *canary) whole(ctx context.Context, job pipeline.Job) (says string, kept bool, err error) {
	result, err := view.Result(ctx, c.system, job)
	if err != nil {
		return "", false, err
	}
	rows, err := workRows(ctx, c.system, job.ID)
	if err != nil {
		return "", false, err
	}
	n, cells := result.Counts, len(rows)*c.cfg.Definition.Calls()
	done := !slices.ContainsFunc(rows, func(row pipeline.Task) bool { return row.Status != pipeline.TaskDone })
	kept = job.Status == pipeline.JobCompleted && done && cells > 0 && n.Cells == cells && n.Answered+n.Gated == cells && len(result.Missing) == 0
	return fmt.Sprintf("job %s is %s: %d of %d cells answered or gated, %d missing, in %s", job.ID, job.Status, n.Answered+n.Gated, cells,
		len(result.Missing), pipeline.CountOf(len(rows), "chunk", "chunks")), kept, nil
}

// hand is one attempt, and what its worker asked in it.
type hand struct {
	pipeline.Record
	tries []pipeline.Try
}

// hands are all attempts of a job, from what is stored.
func (c *canary) hands(ctx context.Context, id pipeline.JobID) ([]hand, error) {
	rows, err := pipeline.AllTasks(ctx, c.cfg.Backend.Store, id)
	if err != nil {
		return nil, err
	}
	var all []hand
	for _, row := range rows {
		history, err := pipeline.ReadHistory(ctx, c.cfg.Backend.Store, row.Ref)
		if err != nil {
			return nil, err
		}
		for _, record := range row.Counting(history.Records) {
			h := hand{Record: record}
			for _, page := range history.Journals {
				if page.Generation == record.Generation {
					h.tries = append(h.tries, page.Tries...)
				}
			}
			all = append(all, h)
		}
	}
	return all, nil
}

// outcome is what a check left of a job: its chunks, and all attempts. What the stack's workers did goes into the report.
func (c *canary) outcome(ctx context.Context, id pipeline.JobID) (rows []pipeline.Task, hands []hand, err error) {
	if rows, err = workRows(ctx, c.system, id); err != nil {
		return nil, nil, err
	}
	if hands, err = c.hands(ctx, id); err != nil {
		return nil, nil, err
	}
	c.tell(hands)
	return rows, hands, nil
}

// mine says that a worker is the canary's own.
func (c *canary) mine(worker string) bool { return strings.HasPrefix(worker, "smoke-"+c.cfg.Nonce+"-") }

// by says which of the stack's workers made attempts of a kind of task.
func (c *canary) by(hands []hand, kind pipeline.TaskKind) string {
	attempts := map[string]int{}
	var names []string
	for _, h := range hands {
		if h.Task.Kind() != kind || c.mine(h.Worker) {
			continue
		}
		if attempts[h.Worker]++; attempts[h.Worker] == 1 {
			names = append(names, h.Worker)
		}
	}
	const most = 3
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if len(names) == 0 {
		return "nobody of the stack"
	}
	return strings.Join(names, ", ")
}

// tell adds what the stack's workers did for a job to the report.
func (c *canary) tell(hands []hand) {
	for _, h := range hands {
		if !c.mine(h.Worker) {
			c.report.Attempts++
			c.report.Busy += h.EndedAt.Sub(h.ClaimedAt)
			c.report.Calls += h.Tries
		}
	}
}

// rounded is a time as it is told.
func rounded(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}
