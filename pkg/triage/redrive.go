package triage

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// ErrRefused says that a redrive of this job or task cannot help, and what does.
var ErrRefused = errors.New("cannot be redriven")

// rounds bounds how often the redrive of one task is decided anew because a row moved or a transaction met another.
const rounds = 6

// Redriven is what a redrive gives, or would give, back.
type Redriven struct {
	Job     pipeline.Job   `json:"job"` // as it stands after
	Tasks   []RedrivenTask `json:"tasks"`
	Skipped []Skipped      `json:"skipped,omitempty"`
	Tries   int            `json:"tries"` // how many more may be sent
	Cost    pipeline.Money `json:"cost"`  // what they may cost at most: the ceiling is raised by so much
}

// RedrivenTask is one task's part.
type RedrivenTask struct {
	Task     pipeline.TaskID `json:"task"`
	Accepted int             `json:"accepted"` // the last stage that stays accepted
	Calls    int             `json:"calls"`    // that are asked again unless their reply is stored
	Tries    int             `json:"tries"`
	Cost     pipeline.Money  `json:"cost"`
}

// Skipped is a task that was not redriven, and why.
type Skipped struct {
	Task pipeline.TaskID `json:"task"`
	Why  string          `json:"why"`
}

// Preview is what Redrive would do, without doing it.
func (t *Triage) Preview(ctx context.Context, id pipeline.JobID, tasks ...pipeline.TaskID) (Redriven, error) {
	return t.each(ctx, id, tasks, func(ctx context.Context, ref pipeline.Ref) (RedrivenTask, pipeline.Job, error) {
		job, row, err := t.read(ctx, ref)
		if err != nil {
			return RedrivenTask{}, job, err
		}
		part, err := t.offer(ctx, job, row)
		return part, job, err
	})
}

// Redrive gives tasks attempts back and reopens their job, each in a transaction of its own: the tasks named, or all
// that have cells without an answer: abandoned, stopped by the ceiling or the deadline, done with failed cells. Each
// task's cap of tries, and the job's ceiling, are raised by what Preview shows.
func (t *Triage) Redrive(ctx context.Context, id pipeline.JobID, tasks ...pipeline.TaskID) (Redriven, error) {
	return t.RedriveWithin(ctx, id, unbounded, tasks...)
}

func (t *Triage) each(ctx context.Context, id pipeline.JobID, tasks []pipeline.TaskID, do func(context.Context, pipeline.Ref) (RedrivenTask, pipeline.Job, error)) (Redriven, error) {
	var out Redriven
	var err error
	if out.Job, err = t.cfg.Store.Job(ctx, id); err != nil {
		return out, fmt.Errorf("redrive job %s: %w", id, err)
	}
	named := len(tasks) > 0
	if tasks, err = t.candidates(ctx, id, tasks); err != nil {
		return out, fmt.Errorf("redrive job %s: %w", id, err)
	}
	if err := refuseJob(out.Job); err != nil {
		return out, fmt.Errorf("redrive job %s: %w", id, err)
	}
	for _, task := range tasks {
		part, job, err := do(ctx, pipeline.Ref{Job: id, ID: task})
		switch {
		case errors.Is(err, errSound) && !named:
			continue
		case errors.Is(err, ErrRefused), errors.Is(err, pipeline.ErrNotFound):
			out.Skipped = append(out.Skipped, Skipped{Task: task, Why: err.Error()})
			continue
		case err != nil:
			return out, fmt.Errorf("redrive %s/%s: %w", id, task, err)
		}
		out.Job = job
		out.Tasks = append(out.Tasks, part)
		out.Tries += part.Tries
		out.Cost += part.Cost
	}
	if len(out.Tasks) == 0 {
		return out, fmt.Errorf("redrive job %s: %w: %s", id, ErrRefused, nothing(out))
	}
	return out, nil
}

func nothing(out Redriven) string {
	if len(out.Skipped) > 0 {
		return fmt.Sprintf("%s: %s", out.Skipped[0].Task, out.Skipped[0].Why)
	}
	return "every cell has its answer"
}

// candidates is the tasks named, or the work of every chunk.
func (t *Triage) candidates(ctx context.Context, id pipeline.JobID, named []pipeline.TaskID) ([]pipeline.TaskID, error) {
	rows, err := pipeline.AllTasks(ctx, t.cfg.Store, id)
	if err != nil {
		return nil, err
	}
	var all []pipeline.TaskID
	for _, row := range rows {
		if row.ID == pipeline.SplitTask && row.Status.Ended() && row.Status != pipeline.TaskDone {
			return nil, fmt.Errorf("%w: its split is %s (%s): submit the document again", ErrRefused, row.Status, row.Reason)
		}
		if row.ID.Kind() == pipeline.TaskWork && row.Status.Ended() {
			all = append(all, row.ID)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return all, nil
}

func refuseJob(job pipeline.Job) error {
	switch job.Status {
	case pipeline.JobCancelling, pipeline.JobCancelled:
		return fmt.Errorf("%w: it is %s: submit the document again, its stored replies are kept", ErrRefused, job.Status)
	case pipeline.JobCompleted:
		return fmt.Errorf("%w: it is completed, nothing is missing", ErrRefused)
	case pipeline.JobPlanned:
		return fmt.Errorf("%w: it was not started", ErrRefused)
	}
	return nil
}

// errSound says that a task has nothing to redrive.
var errSound = fmt.Errorf("%w: every cell of it has its answer", ErrRefused)

func (t *Triage) read(ctx context.Context, ref pipeline.Ref) (pipeline.Job, pipeline.Task, error) {
	job, err := t.cfg.Store.Job(ctx, ref.Job)
	if err != nil {
		return job, pipeline.Task{}, err
	}
	row, err := t.cfg.Store.Task(ctx, ref)
	return job, row, err
}

// offer is what a redrive of the row gives back: all calls of the stages from the first that is not whole, because the
// answers of one stage change the questions of the next.
func (t *Triage) offer(ctx context.Context, job pipeline.Job, row pipeline.Task) (RedrivenTask, error) {
	part := RedrivenTask{Task: row.ID, Accepted: row.Accepted}
	switch {
	case row.ID.Kind() == pipeline.TaskSplit:
		return part, fmt.Errorf("%w: a split is not: submit the document again, its stored replies are kept", ErrRefused)
	case row.ID.Kind() != pipeline.TaskWork:
		return part, fmt.Errorf("%w: a %s is not", ErrRefused, row.ID.Kind())
	case !row.Status.Ended():
		return part, fmt.Errorf("%w: it is %s", ErrRefused, row.Status)
	}
	for stage := 1; stage <= row.Accepted; stage++ {
		cells, err := t.acceptedIn(ctx, row, stage)
		if err != nil {
			return part, err
		}
		if len(withoutAnswer(cells)) > 0 {
			part.Accepted = stage - 1
			break
		}
	}
	if row.Status == pipeline.TaskDone && part.Accepted == row.Accepted {
		return part, errSound
	}
	return part, t.price(ctx, job, &part)
}

func (t *Triage) price(ctx context.Context, job pipeline.Job, part *RedrivenTask) error {
	body, err := t.cfg.Blobs.Blob(ctx, job.Fingerprint)
	if err != nil {
		return fmt.Errorf("read the definition: %w", err)
	}
	d, err := pipeline.DecodeDefinition(body)
	if err != nil {
		return err
	}
	part.Calls = d.CallsAfter(part.Accepted)
	part.Tries = t.cfg.Policy.TryCap(part.Calls)
	body, err = t.cfg.Store.Item(ctx, job.ID, pipeline.PlanKey)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil // no money was ever reserved: there is no ceiling to raise
	}
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	plan, err := pipeline.Decode[pipeline.Plan](body, pipeline.PlanKey)
	part.Cost = t.cfg.Policy.WorstCase(pipeline.Money(part.Calls) * plan.PerCell())
	return err
}

// redrive redrives one task on the job row as it stands now, and rings it. The ceiling rises by room at most.
func (t *Triage) redrive(ctx context.Context, ref pipeline.Ref, room pipeline.Money) (RedrivenTask, pipeline.Job, error) {
	var sent pipeline.RedriveWrite
	var part RedrivenTask
	var last error
	for range rounds {
		job, row, err := t.read(ctx, ref)
		if err != nil {
			return part, job, err
		}
		if landed(sent, job, row) {
			return t.rung(ctx, part, job, row)
		}
		if err := refuseJob(job); err != nil {
			return part, job, err
		}
		if part, err = t.offer(ctx, job, row); err != nil {
			return part, job, err
		}
		part.Cost = min(part.Cost, room)
		sent = t.write(job, row, part)
		if err := t.raise(ctx, row, part.Cost); err != nil {
			return part, job, err
		}
		task, reopened, err := t.cfg.Store.Redrive(ctx, sent)
		switch {
		case err == nil:
			return t.rung(ctx, part, reopened, task)
		case errors.Is(err, pipeline.ErrFenced):
		case errors.Is(err, pipeline.ErrConflict), errors.Is(err, pipeline.ErrBusy):
			if err := t.cfg.Clock.Sleep(ctx, t.cfg.Policy.JobPoll); err != nil {
				return part, job, err
			}
		default:
			return part, job, err
		}
		last = err
	}
	return part, pipeline.Job{}, fmt.Errorf("job and task kept moving, try again: %w", last)
}

// landed says that a transaction whose answer was lost is the one that the rows show.
func landed(sent pipeline.RedriveWrite, job pipeline.Job, row pipeline.Task) bool {
	return sent.Task.ID != "" && job.Epoch >= sent.Reopened.Epoch &&
		row.Generation == sent.Task.Generation+1 && row.MaxTries == sent.MaxTries && !row.Status.Ended()
}

func (t *Triage) write(job pipeline.Job, row pipeline.Task, part RedrivenTask) pipeline.RedriveWrite {
	now := t.cfg.Clock.Now()
	reopened := job
	reopened.Epoch++
	reopened.Deadline = now.Add(t.cfg.Policy.JobDeadline)
	reopened.EndedAt, reopened.Reason, reopened.Result = 0, pipeline.Failure{}, ""
	reopened.Status = pipeline.JobRunning
	if job.Status == pipeline.JobPaused {
		reopened.Status, reopened.PausedAt = pipeline.JobPaused, now // its new deadline is shifted from now on
	}
	return pipeline.RedriveWrite{
		Task: row, Job: job, Accepted: part.Accepted, Reopened: reopened, MaxTries: row.MaxTries + part.Tries, Now: now,
	}
}

// raise raises the ceiling before the transaction: the other way round a crash in between would leave a task that may
// not spend. Once per task and generation, since a redrive raises that: trying again adds nothing, on whatever epoch,
// and redrives of two tasks that meet add what each of them needs.
func (t *Triage) raise(ctx context.Context, row pipeline.Task, amount pipeline.Money) error {
	if amount == 0 {
		return nil
	}
	err := t.cfg.Store.RaiseBudget(ctx, row.Ref, row.Generation, amount)
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return fmt.Errorf("raise the ceiling: %w", err)
	}
	return nil
}

func (t *Triage) rung(ctx context.Context, part RedrivenTask, job pipeline.Job, row pipeline.Task) (RedrivenTask, pipeline.Job, error) {
	_ = t.cfg.Queues.Ring(ctx, row) // lost: the row is due, and the reaper rings
	return part, job, nil
}
