package triage

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// Width is how many columns the texts fit.
const Width = 100

// page gathers lines and keeps them within Width.
type page struct{ strings.Builder }

func (p *page) line(indent int, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	first := true
	for _, part := range wrap(text, Width-indent) {
		pad := indent
		if !first {
			pad += 2
		}
		first = false
		p.WriteString(strings.Repeat(" ", pad) + part + "\n")
	}
}

// wrap breaks a text at spaces into parts of at most n columns, two fewer after the first; a longer word is cut.
func wrap(text string, n int) []string {
	var parts []string
	for {
		room := n
		if len(parts) > 0 {
			room -= 2
		}
		runes := []rune(text)
		if len(runes) <= room {
			return append(parts, text)
		}
		cut := room
		for i := room; i > room/2; i-- {
			if runes[i] == ' ' {
				cut = i
				break
			}
		}
		parts = append(parts, strings.TrimRight(string(runes[:cut]), " "))
		text = strings.TrimLeft(string(runes[cut:]), " ")
	}
}

// Text is the story of a task for a terminal.
func (s TaskStory) Text() string {
	var p page
	p.line(0, "%s of job %s (%s, the job is %s)", s.Task.ID, s.Job.ID, s.Job.Name, s.Job.Status)
	if s.Chunk != nil && s.Item != "" {
		p.line(0, "item %d, line %d of the file: %s", s.Chunk.Index, s.Line, short(s.Item, 200))
	} else if s.Chunk != nil {
		p.line(0, "chunk %d, bytes %s to %s%s", s.Chunk.Index, pipeline.Count(s.Chunk.Start), pipeline.Count(s.Chunk.End), heading(s.Chunk.Heading))
	}
	p.line(0, "%s", s.standing())
	if !s.Task.Reason.None() && s.Task.Status != pipeline.TaskDone {
		p.line(2, "because %s", s.Task.Reason)
	}
	if c := s.Cancellation; c != nil {
		p.line(2, "%s, %s saved before", c.Label, many(c.Saved, "stage"))
	}
	p.line(0, "in all: %s", sums(s.Sums, s.Item != ""))
	for _, a := range s.Attempts {
		p.WriteString("\n")
		a.write(&p, s.Item != "")
	}
	for _, r := range s.Closed {
		p.WriteString("\n")
		p.line(0, "closed by nobody's attempt at %s: %s -> %s", clock(r.EndedAt), r.Failure, r.Status)
	}
	s.writeMissing(&p)
	return p.String()
}

// WriteText writes the story of a task for a terminal.
func (s TaskStory) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, s.Text())
	return err
}

func heading(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func (s TaskStory) standing() string {
	t := s.Task
	text := fmt.Sprintf("%s, %d of %s accepted, %s", t.Status, t.Accepted, many(t.Stages, "stage"), many(len(s.Attempts), "attempt"))
	if t.Deferrals > 0 {
		text += ", " + many(t.Deferrals, "deferral")
	}
	if t.Losses > 0 {
		text += ", " + pipeline.CountOf(t.Losses, "loss", "losses") + " since the last accepted stage"
	}
	if t.MaxTries > 0 {
		text += fmt.Sprintf(", %s of %s tries allowed so far", pipeline.Count(t.Allowed), pipeline.Count(t.MaxTries))
	}
	return text
}

func (a AttemptStory) write(p *page, item bool) {
	switch {
	case a.Record != nil:
		r := *a.Record
		p.line(0, "TIER TWO  attempt %d, generation %d, worker %s", r.Attempt, a.Generation, r.Worker)
		p.line(2, "%s to %s (%s)  %s -> %s%s", clock(r.ClaimedAt), clock(r.EndedAt), r.EndedAt.Sub(r.ClaimedAt).Round(time.Millisecond), r.Outcome, r.Status, counted(r))
		if !r.Failure.None() {
			p.line(2, "because %s", r.Failure)
		}
		if r.Failure.Detail != "" {
			p.line(4, "%s", r.Failure.Detail)
		}
		p.line(2, "%s", sums(r, item))
	case a.Running:
		p.line(0, "TIER TWO  generation %d, worker %s: it runs", a.Generation, a.Worker)
	default:
		p.line(0, "TIER TWO  generation %d, worker %s: its record is not written yet", a.Generation, a.Worker)
	}
	for _, r := range a.Others {
		p.line(2, "also ended by %s, which does not count: %s %s", ender(r), r.Outcome, r.Failure)
	}
	if len(a.Tries) > 0 {
		p.line(2, "TIER ONE  %s", tries(len(a.Tries)))
	}
	for _, t := range a.Tries {
		writeTry(p, t)
	}
	if a.Unnamed > 0 {
		p.line(2, "and %s known by number only: the worker died, or lost its claim, before it wrote them down", pipeline.CountOf(a.Unnamed, "more try", "more tries"))
	}
}

func counted(r pipeline.Record) string {
	if r.Counted {
		return ", counted"
	}
	return ", not counted"
}

func ender(r pipeline.Record) string {
	if r.Ender == pipeline.ExpiredBy {
		return "the reaper"
	}
	return "worker " + r.Worker
}

func sums(r pipeline.Record, item bool) string {
	tokens := fmt.Sprintf(", %s tokens in and %s out", pipeline.Count(r.Usage.Input), pipeline.Count(r.Usage.Output))
	if item && r.Usage == (pipeline.Usage{}) {
		tokens = ""
	}
	text := fmt.Sprintf("%s, %s%s, %s", tries(r.Tries+r.Unnamed), many(r.Answers, "new answer"), tokens, r.Cost)
	var failures []string
	for _, kind := range slices.Sorted(maps.Keys(r.Failures)) {
		failures = append(failures, fmt.Sprintf("%s %d", kind, r.Failures[kind]))
	}
	if len(failures) > 0 {
		text += "; failed: " + strings.Join(failures, ", ")
	}
	return text
}

// many is how many of what takes an s.
func many(n int, one string) string { return pipeline.CountOf(n, one, one+"s") }

func tries(n int) string { return pipeline.CountOf(n, "try", "tries") }

// writeTry is one line, and another for the reason of a failure: exactly Width columns at most.
func writeTry(p *page, t pipeline.Try) {
	outcome := "answered"
	if !t.Failure.None() {
		outcome = string(t.Failure.Kind)
	}
	if t.Reask {
		outcome += "*"
	}
	tokens := fmt.Sprintf("%s>%s", pipeline.Count(t.Usage.Input), pipeline.Count(t.Usage.Output))
	cost := t.Cost.String()
	if t.Unsure {
		cost += "?"
	}
	p.WriteString(strings.TrimRight(fmt.Sprintf("    %s %7dms  %-30s #%-2d %-12s %13s %10s", clock(t.At), t.Millis, short(t.Call, 30), t.Number, short(outcome, 12), tokens, cost), " ") + "\n")
	if t.Failure.None() {
		return
	}
	why := t.Failure.Cause
	if t.Failure.Code != "" {
		why += " (" + t.Failure.Code + ")"
	}
	p.line(28, "%s", why)
	if t.Failure.Detail != "" {
		p.line(28, "%s", t.Failure.Detail)
	}
}

func short(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}

func clock(i pipeline.Instant) string {
	if i == 0 {
		return "-"
	}
	return i.Time().Format("15:04:05.000")
}

func (s TaskStory) writeMissing(p *page) {
	if len(s.Missing) == 0 {
		return
	}
	p.WriteString("\n")
	p.line(0, "MISSING  %s of accepted stages without an answer", many(len(s.Missing), "cell"))
	for _, c := range s.Missing {
		p.line(2, "%s: %s after %s, %s", c.Call, c.State, tries(c.Tries), c.Failure)
	}
}
