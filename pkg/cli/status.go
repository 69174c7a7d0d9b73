package cli

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

type statusCmd struct {
	jobArg
	JSON bool `name:"json" help:"Print one JSON object."`
}

// standing is where a job stands, for status. Its job is the object that jobs --json prints.
type standing struct {
	Job         pipeline.Job                `json:"job"`
	Plan        *pipeline.Plan              `json:"plan,omitempty"`
	Chunks      int                         `json:"chunks"`
	Tasks       map[pipeline.TaskStatus]int `json:"chunks_by_status"`
	Counts      pipeline.Counts             `json:"counts"` // of the cells that have ended, each way apart
	Open        int                         `json:"open"`   // cells that have not ended
	Unread      []pipeline.Unread           `json:"unread,omitempty"`
	Deferrals   int                         `json:"deferrals"`
	Unclaimable []pipeline.TaskID           `json:"unclaimable,omitempty"`
	Setbacks    []pipeline.Setback          `json:"setbacks,omitempty"` // why chunks that have not ended last failed, or were deferred
	Budget      *budget                     `json:"budget,omitempty"`
	items       bool                        // a handler's work, not questions to a model
	free        bool                        // no price of it is known
	at          pipeline.Instant            // when this was read
	command     func(words ...string) string
	worker      func() string // the command that starts one for the job
}

// budget is a job's money, in billionths of a dollar.
type budget struct {
	Ceiling  pipeline.Money `json:"ceiling"`
	Spent    pipeline.Money `json:"spent"`
	Reserved pipeline.Money `json:"reserved"`
}

// Run shows where a job stands.
func (c *statusCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		st, err := a.standingOf(s, job)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(st)
		}
		screen := newScreen(a, false)
		screen.say("job %s: %s", job.ID, job.Status)
		screen.lines(indented("  ", st.lines(s.Policy())...)...)
		return nil
	})
}

func (a *app) standingOf(s *wiring.System, job pipeline.Job) (standing, error) {
	ctx, st := a.ctx, standing{Job: job, command: a.command, worker: func() string { return a.workerFor(job.Model) }}
	model, _ := modelOf(ctx, s, job.ID) // of old jobs none is known: then their parts are chunks
	st.items = model.Handler
	manifest, err := pipeline.ReadManifest(ctx, s.Backend.Store, job.ID)
	if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return st, err
	}
	st.Unread = manifest.Unread
	definition, err := definitionOf(ctx, s, job)
	if err != nil {
		return st, err
	}
	p, err := progressOf(ctx, s, job, definition)
	if err != nil {
		return st, err
	}
	st.Chunks, st.Tasks, st.Deferrals, st.Unclaimable = p.Chunks, p.Status, p.Deferrals, p.Unclaimable
	st.Setbacks, st.free, st.at = a.typeableSetbacks(p.Setbacks), definition.Handler != "" && definition.TryCost == 0, pipeline.NewRealClock().Now()
	if st.Counts, err = countsOf(ctx, s, job, definition); err != nil {
		return st, err
	}
	if job.Result == "" {
		st.Counts.Cells = p.Cells
		st.Open = p.Cells - st.Counts.Answered - st.Counts.Failed - st.Counts.Gated - st.Counts.NotAsked
	}
	if plan, err := s.Submitter.Plan(ctx, job.ID); err == nil && job.Status == pipeline.JobPlanned && p.Chunks > 0 {
		st.Plan = &plan
	}
	b, err := s.Backend.Store.Budget(ctx, job.ID)
	if errors.Is(err, pipeline.ErrNotFound) {
		return st, nil // nobody has needed any yet
	}
	if err != nil {
		return st, fmt.Errorf("read the budget of job %s: %w", job.ID, err)
	}
	st.Budget = &budget{b.Ceiling, b.Spent, b.Ceiling - b.Spent - b.Remaining}
	return st, nil
}

// countsOf tells how cells ended: of the result, or, while there is none, of the stages that were accepted.
func countsOf(ctx context.Context, s *wiring.System, job pipeline.Job, definition pipeline.Definition) (pipeline.Counts, error) {
	if job.Result != "" {
		r, err := resultOf(ctx, s, job)
		return r.Counts, err
	}
	var c pipeline.Counts
	rows, err := pipeline.AllTasks(ctx, s.Backend.Store, job.ID)
	if err != nil {
		return c, fmt.Errorf("read the tasks of job %s: %w", job.ID, err)
	}
	for _, row := range rows {
		if row.ID.Kind() != pipeline.TaskWork {
			continue
		}
		for stage := 1; stage <= row.Accepted; stage++ {
			body, err := pipeline.ReadBody(ctx, s.Backend.Store, row, stage)
			if err != nil {
				return c, err
			}
			c.Add(body.Cells...)
		}
		if row.Status.Ended() {
			c.NotAsked += definition.CallsAfter(row.Accepted)
		}
	}
	return c, nil
}

func (st standing) lines(policy pipeline.Policy) []string {
	job := st.Job
	lines := []string{fmt.Sprintf("document %s, pipeline %s, model %s", job.Name, job.Pipeline, job.Model)}
	if st.items {
		lines[0] = fmt.Sprintf("items %s, handler %s", job.Name, job.Model)
	}
	if !job.Reason.None() && !answeredAll(job.Status, st.Counts) {
		lines = append(lines, "reason: "+job.Reason.String())
	}
	if lacks := notJudged(st.Unread); lacks != "" {
		lines = append(lines, lacks)
	}
	if !job.Status.Ended() && st.Chunks == 0 {
		return append(lines, "not split yet; a worker does that: "+st.worker())
	}
	if st.Plan != nil {
		lines = append(lines, submit.Lines(*st.Plan)...)
		return append(lines, "start it with: "+st.command("resume", string(job.ID)))
	}
	lines = append(lines, st.cells(), st.chunks())
	for _, task := range st.Unclaimable {
		lines = append(lines, fmt.Sprintf("unclaimable: %s was rung more than %d times and never claimed", task, policy.MaxRings))
	}
	for _, b := range st.Setbacks {
		lines = append(lines, "held back: "+oneLine(b.Text(st.at)))
	}
	switch b := st.Budget; {
	case st.free:
		lines = append(lines, "no price is set (--try-cost): nothing is counted as spent")
	case b != nil:
		lines = append(lines, fmt.Sprintf("spent %s of a ceiling of %s, %s reserved", b.Spent, b.Ceiling, b.Reserved))
	}
	return lines
}

// cells tells the ways apart in which cells end: done is not answered.
func (st standing) cells() string {
	c := st.Counts
	one, many := itemNoun(st.items)
	line := fmt.Sprintf("%s: %s answered, %s not needed, %s failed", pipeline.CountOf(c.Cells, one, many), pipeline.Count(c.Answered), pipeline.Count(c.Gated), pipeline.Count(c.Failed))
	if c.NotAsked > 0 {
		line += fmt.Sprintf(", %s not asked", pipeline.Count(c.NotAsked))
	}
	if st.Open > 0 {
		line += fmt.Sprintf(", %s open", pipeline.Count(st.Open))
	}
	return line
}

func (st standing) chunks() string {
	line := pipeline.CountOf(st.Chunks, "chunk", "chunks") + ":"
	if st.items {
		line = "tasks:"
	}
	sep := " "
	for _, status := range []pipeline.TaskStatus{
		pipeline.TaskDone, pipeline.TaskAbandoned, pipeline.TaskCancelled, pipeline.TaskClaimed, pipeline.TaskPending, pipeline.TaskParked,
	} {
		if n := st.Tasks[status]; n > 0 {
			line += fmt.Sprintf("%s%s %s", sep, pipeline.Count(n), status)
			sep = ", "
		}
	}
	if st.Deferrals > 0 {
		line += "; " + pipeline.CountOf(st.Deferrals, "deferral", "deferrals")
	}
	return line
}
