package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

// gravest is how many findings the terminal shows.
const gravest = 5

// outcome is how a run went: what the last lines, or --json, tell.
type outcome struct {
	Result   pipeline.Result    `json:"-"`
	Job      pipeline.JobID     `json:"job"`
	Status   pipeline.JobStatus `json:"status"`
	Reason   string             `json:"reason,omitempty"`
	Unread   []pipeline.Unread  `json:"unread,omitempty"` // parts of the document that were not read: it is not judged in full
	Counts   pipeline.Counts    `json:"counts"`
	Stood    bool               `json:"stood"` // the job had ended before: nothing was asked
	Killed   int                `json:"workers_killed"`
	Asked    int                `json:"calls_asked"` // that were answered by the model in this job
	InFlight int                `json:"in_flight_asked_again"`
	Again    int                `json:"stored_asked_again"`
	Witness  bool               `json:"witness"` // the two numbers above come from the model's own ledger
	Spend    pipeline.Spend     `json:"spend"`
	AtMost   pipeline.Money     `json:"spend_at_most"` // what the budget counts: all that workers which died had reserved
	Findings []pipeline.Finding `json:"gravest,omitempty"`
	Total    int                `json:"findings"`
	Files    []string           `json:"files,omitempty"`
	model    pipeline.ModelInfo
	command  func(words ...string) string
	redrive  string // how what is missing is asked for again
}

// outcomeOf reads the result of a job that has ended.
func (a *app) outcomeOf(ctx context.Context, s *wiring.System, job pipeline.Job) (outcome, error) {
	o := outcome{Job: job.ID, Status: job.Status, Reason: job.Reason.Cause, command: a.command}
	var err error
	if o.model, err = view.Model(ctx, s, job.ID); err != nil {
		return o, err
	}
	if job.Result == "" {
		o.Result = pipeline.Result{Job: job, Status: job.Status, Reason: job.Reason}
		return o, nil
	}
	result, err := view.Result(ctx, s, job)
	if err != nil {
		return o, err
	}
	o.Result, o.Counts, o.Spend, o.Total = result, result.Counts, result.Spend, len(result.Findings)
	o.Findings = result.Findings[:min(gravest, len(result.Findings))]
	o.Asked, o.Unread = o.Counts.Asked, result.Manifest.Unread
	if budget, err := s.Backend.Store.Budget(ctx, job.ID); err == nil { // a job that never began has none
		o.AtMost = budget.Spent
		o.redrive = o.redriveLine(ctx, s, budget.Ceiling)
	}
	return o, nil
}

// redriveLine is how what is missing is asked for again, and what the ceiling would be then: a person who set a low one
// must not learn of the next from the bill.
func (o outcome) redriveLine(ctx context.Context, s *wiring.System, ceiling pipeline.Money) string {
	line := "Ask for it again with:   " + o.command("redrive", string(o.Job))
	if o.Status != pipeline.JobPartial && o.Status != pipeline.JobFailed {
		return line
	}
	offer, err := s.Triage.Preview(ctx, o.Job)
	if err != nil || offer.Cost == 0 {
		return line // the command itself says why
	}
	return fmt.Sprintf("%s (its ceiling rises from %s to %s; --max-cost USD sets a lower one)", line, ceiling, ceiling+offer.Cost)
}

// readLedger compares what the model says it was asked with when each reply was stored.
func (o *outcome) readLedger(ctx context.Context, s *wiring.System, path string) error {
	if path == "" {
		return nil
	}
	entries, err := offline.ReadLedger(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	var keys []pipeline.ReplyKey
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	replies, err := pipeline.ReadReplies(ctx, s.Backend.Store, s.Backend.Blobs, pipeline.NewRealClock(), keys)
	if err != nil {
		return err
	}
	stored := map[pipeline.ReplyKey]pipeline.Instant{}
	for key, reply := range replies {
		stored[key] = reply.At
	}
	repeated := offline.Repeats(entries, stored)
	o.InFlight, o.Again = repeated.InFlight+repeated.Unstored, repeated.Stored
	o.Witness = true
	return nil
}

// lines are the end of a run, for a person.
func (o outcome) lines() []string {
	lines := []string{"", o.headline()}
	lacks := notJudged(o.Unread)
	if lacks != "" {
		lines = append(lines, lacks+".")
	}
	whole := answeredAll(o.Status, o.Counts)
	if o.Status != pipeline.JobCompleted && o.Reason != "" && !whole {
		lines = append(lines, "Reason: "+o.Reason)
	}
	if o.Status == pipeline.JobPartial && !whole {
		lines = append(lines,
			"What is missing and why: "+o.command("why", string(o.Job)),
			cmp.Or(o.redrive, "Ask for it again with:   "+o.command("redrive", string(o.Job))))
	}
	if o.Counts.Cells > 0 {
		lines = append(lines, o.spending())
	}
	if m := o.Result.Manifest; o.Counts.Answered > 0 && len(m.Chunks) > 0 {
		if caveat := o.model.Caveat(len(m.Chunks), o.Counts.Cells/len(m.Chunks)); caveat != "" {
			lines = append(lines, "Note: "+caveat+".")
		}
	}
	if len(o.Findings) > 0 {
		lines = append(lines, "", fmt.Sprintf("The gravest of %s:", pipeline.CountOf(o.Total, "finding", "findings")))
	}
	for _, f := range o.Findings {
		lines = append(lines, findingLines(f)...)
	}
	if len(o.Files) > 0 {
		lines = append(lines, "", "Written:")
	}
	for _, file := range o.Files {
		lines = append(lines, "  "+file)
	}
	return lines
}

// notJudged is the verdict on a document that was not read in full; "" if it was.
func notJudged(parts []pipeline.Unread) string {
	if len(parts) == 0 {
		return ""
	}
	var reasons []string
	for _, part := range parts {
		if !slices.Contains(reasons, part.Why) {
			reasons = append(reasons, part.Why)
		}
	}
	return fmt.Sprintf("Not judged in full: %s (%s)", pipeline.NotRead(parts), strings.Join(reasons, "; "))
}

// answeredAll says that a job is partial for nothing but what was not read of its document.
func answeredAll(status pipeline.JobStatus, c pipeline.Counts) bool {
	return status == pipeline.JobPartial && c.Failed+c.NotAsked == 0
}

// headline is the one line that says whether anything was lost.
func (o outcome) headline() string {
	c := o.Counts
	if c.Cells == 0 {
		return fmt.Sprintf("Job %s is %s.", o.Job, o.Status)
	}
	_, parts := itemNoun(o.model.Handler)
	line := fmt.Sprintf("%s of %s %s answered", pipeline.Count(c.Answered), pipeline.Count(c.Cells), parts)
	if c.Gated > 0 {
		line += fmt.Sprintf(", %s not needed", pipeline.Count(c.Gated))
	}
	if missing := c.Failed + c.NotAsked; missing > 0 {
		line += fmt.Sprintf(", %s missing (%s)", pipeline.Count(missing), o.Status)
	}
	if o.Stood {
		return line + fmt.Sprintf("; job %s had ended before: 0 calls.", o.Job)
	}
	if o.Killed > 0 {
		line += "; " + pipeline.CountOf(o.Killed, "worker killed", "workers killed")
	}
	if o.Witness && o.Killed+o.InFlight+o.Again > 0 { // after a plain run there is nothing to tell
		line += fmt.Sprintf("; %s in flight and %s asked again", pipeline.CountOf(o.InFlight, "call", "calls"), pipeline.CountOf(o.Again, "stored answer", "stored answers"))
	}
	return line + "."
}

// spending is what the answers took.
func (o outcome) spending() string {
	line := fmt.Sprintf("%s asked, %s answered by stored replies; %s",
		pipeline.CountOf(o.Asked, "call", "calls"), pipeline.CountOf(o.Counts.Answered-o.Asked, "cell", "cells"), pipeline.CountOf(o.Spend.Tries, "try", "tries"))
	if o.model.Handler {
		line = fmt.Sprintf("%s answered now, %s by stored answers; %s",
			pipeline.CountOf(o.Asked, "item", "items"), pipeline.Count(o.Counts.Answered-o.Asked), pipeline.CountOf(o.Spend.Tries, "try", "tries"))
	}
	if o.Spend.Unnamed > 0 {
		line += fmt.Sprintf(" (%s of workers that died, counted as sent)", pipeline.Count(o.Spend.Unnamed))
	}
	line += kinds(o.Spend.Failures) + "; spend " + spendNote(o.Spend.Cost, o.model)
	if o.AtMost > o.Spend.Cost {
		line += fmt.Sprintf(", at most %s if all that workers which died had reserved was billed", o.AtMost)
	}
	return line + "."
}

// quoteWidth is how much of a quote the terminal shows.
const quoteWidth = 220

func findingLines(f pipeline.Finding) []string {
	where := f.Clause
	if where == "" && f.Chunk >= 0 {
		where = fmt.Sprintf("chunk %d", f.Chunk)
	}
	if f.Match == pipeline.MatchAbsence {
		where = "whole document"
	}
	lines := []string{fmt.Sprintf("  %-8s %s [%s]", f.Severity, f.Title, where)}
	if f.Quote != "" {
		quote := pipeline.Cut(oneLine(f.Quote), quoteWidth)
		if len(quote) < len(oneLine(f.Quote)) {
			quote += " ..."
		}
		lines = append(lines, "           \""+quote+"\"")
	}
	return lines
}

// json prints the outcome as one object, and ends with the job's exit code.
func (o outcome) json(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(o); err != nil {
		return err
	}
	return codeError{code: exitCode(o.Status)}.orNil()
}
