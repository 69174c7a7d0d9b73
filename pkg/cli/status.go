package cli

import (
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

type statusCmd struct {
	jobArg
	JSON bool `name:"json" help:"Print one JSON object."`
}

// standing is where a job stands, for status. Its job is the object that jobs --json prints.
type standing struct {
	view.Standing
	command func(words ...string) string
	splits  func() string // who splits the job's document
}

// Run shows where a job stands.
func (c *statusCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		st, err := a.standingOf(s, job)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(st.Standing)
		}
		screen := newScreen(a, false)
		screen.say("job %s: %s", job.ID, job.Status)
		screen.lines(indented("  ", st.lines(s.Policy())...)...)
		return nil
	})
}

func (a *app) standingOf(s *wiring.System, job pipeline.Job) (standing, error) {
	st, err := view.StandingOf(a.ctx, s, job)
	st.Setbacks = a.typeableSetbacks(st.Setbacks)
	return standing{st, a.command, func() string { return a.splits(a.workerFor(job.Model)) }}, err
}

func (st standing) lines(policy pipeline.Policy) []string {
	job := st.Job
	lines := []string{fmt.Sprintf("document %s, pipeline %s, model %s", job.Name, job.Pipeline, job.Model)}
	if st.Items {
		lines[0] = fmt.Sprintf("items %s, handler %s", job.Name, job.Model)
	}
	if !job.Reason.None() && !answeredAll(job.Status, st.Counts) {
		lines = append(lines, "reason: "+job.Reason.String())
	}
	if lacks := notJudged(st.Unread); lacks != "" {
		lines = append(lines, lacks)
	}
	if !job.Status.Ended() && st.Chunks == 0 {
		return append(lines, "not split yet; "+st.splits())
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
		lines = append(lines, "held back: "+oneLine(b.Text(st.At)))
	}
	switch b := st.Budget; {
	case st.Free:
		lines = append(lines, "no price is set (--try-cost): nothing is counted as spent")
	case b != nil:
		lines = append(lines, fmt.Sprintf("spent %s of a ceiling of %s, %s reserved", b.Spent, b.Ceiling, b.Reserved))
	}
	return lines
}

// cells tells the ways apart in which cells end: done is not answered.
func (st standing) cells() string {
	c := st.Counts
	one, many := itemNoun(st.Items)
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
	if st.Items {
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
