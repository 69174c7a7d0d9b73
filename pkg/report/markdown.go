package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// Markdown writes the report for wikis, tickets and terminals. What comes from the document or a model is escaped.
func Markdown(w io.Writer, d Data) error {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("# %s", plain(d.Result.Job.Name))
	say("")
	say("**%s**", plain(d.headline()))
	if caution := d.caution(); caution != "" {
		say("")
		say("> %s", plain(caution))
	}
	for _, note := range d.notes() {
		say("")
		say("> %s", plain(note))
	}
	say("")
	if changed := d.changed(); changed != "" {
		say("%s", plain(changed))
		say("")
	}
	say("%s job %s, %s. %s", plain(d.Definition.Title), plain(string(d.Result.Job.ID)), plain(d.by()), plain(d.money()))
	d.markdownRows(say, d.byWhat(), d.categories())
	d.markdownRows(say, "Analyst", d.analysts())
	d.markdownGaps(say)
	if d.finds() {
		d.markdownFindings(say)
	}
	if err := d.markdownAnswers(say); err != nil {
		return err
	}
	d.markdownSpend(say)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the report of job %s: %w", d.Result.Job.ID, err)
	}
	return nil
}

func (d Data) markdownFindings(say func(string, ...any)) {
	say("")
	say("## Findings")
	findings := d.number()
	if len(findings) == 0 {
		say("")
		say("%s", plain(d.noFindings()))
	}
	groups, unplaced := grouped(findings)
	for _, g := range groups {
		say("")
		say("### %s (%d)", g.Severity, len(g.Findings))
		for _, f := range g.Findings {
			markdownFinding(say, f)
		}
	}
	if len(unplaced) > 0 {
		say("")
		say("### Without a place in the text (%d)", len(unplaced))
		say("")
		say("What these quote was not found in the document. Take them as hints, not as citations.")
	}
	for _, f := range unplaced {
		markdownFinding(say, f)
	}
	if n := len(d.Result.Withdrawn); n > 0 {
		say("")
		say("%s withdrawn: a later call stood for the one that reported it. They are in findings.json, each with its reason.", was(n))
	}
}

func was(n int) string {
	if n == 1 {
		return "1 more finding was"
	}
	return pipeline.Count(n) + " more findings were"
}

// markdownAnswers is the first answers that are no findings, each on a line.
func (d Data) markdownAnswers(say func(string, ...any)) error {
	groups, shown, all, err := d.shownAnswers()
	if err != nil || shown == 0 {
		return err
	}
	say("")
	say("## Answers")
	say("")
	say("%s", shownOf(shown, all))
	for _, g := range groups {
		say("")
		say("### %s %d: %s", d.part(), g.Chunk, plain(g.About))
		say("")
		for _, a := range g.Answers {
			say("- %s: %s", plain(a.Title), plain(a.Short))
		}
	}
	return nil
}

func shownOf(shown, all int) string {
	if shown == all {
		return "Long answers are cut here; answers.jsonl has them whole."
	}
	return fmt.Sprintf("The first %s of %s, long ones cut; all are in answers.jsonl, whole.", pipeline.Count(shown), pipeline.Count(all))
}

func markdownFinding(say func(string, ...any), f numbered) {
	say("")
	say("**%d. %s** (%s; %s)", f.Number, plain(f.Title), plain(f.About), plain(f.Place))
	if f.Quote != "" {
		say("")
		say("> %s", plain(f.Quote))
	}
	if f.Rationale != "" {
		say("")
		say("%s", plain(f.Rationale))
	}
	if f.Suggestion != "" {
		say("")
		say("Suggested wording: %s", plain(f.Suggestion))
	}
	say("")
	also := ""
	if len(f.From) > 0 {
		also = " Also found by: " + plain(some(f.From, 4)) + "."
	}
	say("Confidence %s, model %s.%s", percent(f.Confidence), plain(f.Model), also)
}

func (d Data) markdownRows(say func(string, ...any), what string, rows []row) {
	if len(rows) == 0 {
		return
	}
	say("")
	say("## By %s", strings.ToLower(what))
	say("")
	if !d.finds() {
		say("| %s | Judged |", what)
		say("|---|---|")
		for _, r := range rows {
			say("| %s | %s |", plain(r.Title), plain(r.Verdict))
		}
		return
	}
	say("| %s | Findings | Judged |", what)
	say("|---|---|---|")
	for _, r := range rows {
		var counts []string
		for _, s := range r.Severities {
			counts = append(counts, fmt.Sprintf("%d %s", s.Count, s.Severity))
		}
		say("| %s | %s | %s |", plain(r.Title), strings.Join(counts, ", "), plain(r.Verdict))
	}
}

func (d Data) markdownGaps(say func(string, ...any)) {
	gaps, parts := d.gaps(), d.Result.Manifest.Unread
	if len(gaps)+len(parts) == 0 {
		return
	}
	say("")
	if d.items() {
		say("## What has no answer, and why")
	} else {
		say("## What was not judged, and why")
	}
	say("")
	for _, part := range parts {
		say("- not read: %s (%s)", plain(part.What), plain(part.Why))
	}
	if len(gaps) == 0 {
		return
	}
	if len(parts) > 0 {
		say("")
	}
	say("| How many | Reason | Which %ss | Calls |", d.part())
	say("|---:|---|---|---|")
	for _, g := range gaps {
		say("| %s | %s | %s | %s |", pipeline.Count(g.Cells), plain(g.Why()), some(g.Chunks, 12), plain(some(g.Calls, 4)))
	}
}

func (d Data) markdownSpend(say func(string, ...any)) {
	s := d.Result.Spend
	say("")
	say("## Spend")
	say("")
	say("%s", plain(d.money()))
	say("")
	if d.items() {
		say("- %s tries", pipeline.Count(s.Tries))
	} else {
		say("- %s tries, %s tokens in, %s tokens out", pipeline.Count(s.Tries), pipeline.Count(s.Usage.Input), pipeline.Count(s.Usage.Output))
	}
	if s.Unnamed > 0 {
		say("- %s of the tries are known by number only", pipeline.Count(s.Unnamed))
	}
	if s.Unsure > 0 {
		say("- %s tries were perhaps billed, nobody knows", pipeline.Count(s.Unsure))
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Failures)) {
		say("- failed, %s: %s", kind, pipeline.Count(s.Failures[kind]))
	}
	say("- %s answers were stored already", pipeline.Count(d.Result.Counts.Reused))
}

var escaping = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "<", `&lt;`, ">", `&gt;`,
	"#", `\#`, "|", `\|`, "~", `\~`, "&", "&amp;",
)

// plain is a text on one line, with nothing in it that Markdown would take for markup.
func plain(text string) string { return escaping.Replace(strings.Join(strings.Fields(text), " ")) }
