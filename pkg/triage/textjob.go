package triage

import (
	"fmt"
	"io"
	"strings"

	"holdfast/pkg/pipeline"
)

// listed is how many names a line of a text shows before it says how many more there are.
const listed = 8

// Text is the story of a job for a terminal.
func (s JobStory) Text() string {
	var p page
	p.line(0, "job %s (%s) is %s", s.Job.ID, s.Job.Name, s.Job.Status)
	if !s.Job.Reason.None() {
		p.line(2, "because %s", s.Job.Reason)
	}
	if c := s.Counts; c.Cells > 0 {
		p.line(0, "%s of %s cells answered (%s by stored replies), %s gated, %s failed, %s not asked",
			pipeline.Count(c.Answered), pipeline.Count(c.Cells), pipeline.Count(c.Reused), pipeline.Count(c.Gated), pipeline.Count(c.Failed), pipeline.Count(c.NotAsked))
	}
	s.writeOpen(&p)
	for _, g := range s.Gaps {
		p.WriteString("\n")
		writeGap(&p, g)
	}
	s.writeTasks(&p)
	for _, row := range s.Unclaimable {
		p.line(0, "unclaimable: %s was rung %d times since its last claim, and nobody claims it", row.ID, row.Rings)
	}
	if s.Ended && len(s.Gaps)+len(s.Tasks) == 0 && s.Job.Status != pipeline.JobPartial {
		p.line(0, "nothing is missing")
	}
	return p.String()
}

// WriteText writes the story of a job for a terminal.
func (s JobStory) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, s.Text())
	return err
}

// writeOpen says what is not known yet, and what holds it back.
func (s JobStory) writeOpen(p *page) {
	switch {
	case s.Ended:
		return
	case s.Counts.Cells == 0:
		p.line(0, "it has not ended: nobody knows yet how many cells it has")
	default:
		p.line(0, "it has not ended: %s open; this is what is known so far", pipeline.CountOf(s.Open, "cell", "cells"))
	}
	for _, b := range s.Setbacks {
		p.WriteString("\n")
		p.line(0, "held back  %s", b.Text(s.At))
		p.line(2, "tasks %s", names(b.Tasks))
	}
}

func writeGap(p *page, g pipeline.Gap) {
	p.line(0, "%s  %s", pipeline.CountOf(g.Cells, "cell", "cells"), g.Why())
	if len(g.Stages) > 0 {
		p.line(2, "stages %s", names(g.Stages))
	}
	p.line(2, "calls %s", names(g.Calls))
	p.line(2, "tasks %s", names(g.Tasks))
}

func (s JobStory) writeTasks(p *page) {
	if len(s.Tasks) == 0 {
		return
	}
	p.WriteString("\n")
	p.line(0, "tasks that did not end done")
	alike := map[string][]pipeline.TaskID{}
	var order []string
	for _, t := range s.Tasks {
		text := fmt.Sprintf("%s, %d of %s accepted", t.Status, t.Accepted, many(t.Stages, "stage"))
		if t.Label != "" {
			text += ", " + t.Label
		}
		if !t.Reason.None() {
			text += ": " + t.Reason.String()
		}
		if alike[text] == nil {
			order = append(order, text)
		}
		alike[text] = append(alike[text], t.Task)
	}
	for _, text := range order {
		p.line(2, "%s %s", names(alike[text]), text)
	}
}

func names[T ~string](all []T) string {
	var shown []string
	for _, name := range all[:min(len(all), listed)] {
		shown = append(shown, string(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(all) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Text is what a redrive gives back, for a terminal.
func (r Redriven) Text() string {
	var p page
	for _, t := range r.Tasks {
		p.line(0, "%s: again from stage %d, %s calls, at most %s tries more, at most %s", t.Task, t.Accepted+1, pipeline.Count(t.Calls), pipeline.Count(t.Tries), t.Cost)
	}
	for _, s := range r.Skipped {
		p.line(0, "%s: skipped: %s", s.Task, s.Why)
	}
	p.line(0, "%s; the ceiling is raised by %s, the worst case; answers that are stored are not asked again", many(len(r.Tasks), "task"), r.Cost)
	return p.String()
}
