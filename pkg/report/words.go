package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// items says that what is done is not questions to a model but a handler's work on items.
func (d Data) items() bool { return d.Definition.Handler != "" }

// asked counts cells in the pipeline's words.
func (d Data) asked(n int) string {
	one := "question"
	if d.items() {
		one = "item"
	}
	return pipeline.CountOf(n, one, one+"s")
}

// part is what the document is cut into, in the pipeline's words.
func (d Data) part() string {
	if d.items() {
		return "item"
	}
	return "chunk"
}

// by says who did the work.
func (d Data) by() string {
	if d.items() {
		return "handler " + d.modelName()
	}
	return "model " + d.modelName()
}

// finds says that some call of the pipeline makes findings.
func (d Data) finds() bool {
	return len(d.quiet()) < d.Definition.Calls() || len(d.Result.Findings) > 0
}

// caveat says of which answers the model does not stand for; "" if for all.
func (d Data) caveat() string {
	if caveat := d.Model.Caveat(len(d.Result.Manifest.Chunks), d.Definition.Calls()); caveat != "" {
		return caveat + "."
	}
	return ""
}

// notes are what a reader must know of how the text was read and judged.
func (d Data) notes() []string {
	notes := slices.Clone(d.Result.Manifest.Notes)
	if caveat := d.caveat(); caveat != "" {
		notes = append(notes, caveat)
	}
	return notes
}

// noFindings says what it means that there are none.
func (d Data) noFindings() string {
	switch {
	case d.Result.Status != pipeline.JobCompleted:
		return "No finding was reported. Not everything was judged: see what was not."
	case d.Model.Placeholders > 0:
		return "No finding was reported. " + d.caveat()
	}
	return "Every question was answered, and nothing was found."
}

// changed says that this report replaces others, and what was different; "" for the first of a job.
func (d Data) changed() string {
	r := d.Result
	if r.Epoch <= 1 {
		return ""
	}
	text := fmt.Sprintf("The job was redriven: this report (epoch %d) replaces every earlier one.", r.Epoch)
	if b := d.Before; b != nil {
		text += fmt.Sprintf(" Before: %s of %s answered", pipeline.Count(b.Counts.Answered), d.asked(b.Counts.Cells))
		if d.finds() {
			text += fmt.Sprintf(" and %s; now %s and %s", findings(len(b.Findings)), pipeline.Count(r.Counts.Answered), findings(len(r.Findings)))
		} else {
			text += "; now " + pipeline.Count(r.Counts.Answered)
		}
		text += "."
	}
	return text
}

func findings(n int) string { return pipeline.CountOf(n, "finding", "findings") }

// plural is the word for so many of a thing.
func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// headline says how the job ended and how much was answered: n of m.
func (d Data) headline() string {
	c := d.Result.Counts
	answered := fmt.Sprintf("%s of %s answered", pipeline.Count(c.Answered), d.asked(c.Cells))
	if c.Gated > 0 {
		answered += fmt.Sprintf(", %s not needed", pipeline.Count(c.Gated))
	}
	switch d.Result.Status {
	case pipeline.JobCompleted:
		return "Complete: " + answered + "."
	case pipeline.JobPartial:
		if len(d.Result.Missing) == 0 && d.notRead() != "" {
			return fmt.Sprintf("Not judged in full: %s; %s.", d.notRead(), answered)
		}
		return fmt.Sprintf("Partial: %s, %s without an answer.", answered, pipeline.Count(len(d.Result.Missing)))
	case pipeline.JobCancelled:
		if c.Cells == 0 {
			return "Cancelled before the document was split: nothing was judged."
		}
		return fmt.Sprintf("Cancelled: %s before it was stopped.", answered)
	}
	if c.Cells == 0 {
		return "Failed: nothing was judged."
	}
	return fmt.Sprintf("Failed: %s, %s without an answer.", answered, pipeline.Count(c.Cells-c.Answered-c.Gated))
}

// notRead says what of the document was not read; "" if all of it was.
func (d Data) notRead() string { return pipeline.NotRead(d.Result.Manifest.Unread) }

// behind is the same behind a word that joins it, or "".
func (d Data) behind(word string) string {
	if d.notRead() == "" {
		return ""
	}
	return word + d.notRead()
}

// caution is what a reader must know before anything else; "" for a complete job.
func (d Data) caution() string {
	if d.Result.Status == pipeline.JobCompleted {
		return ""
	}
	text := "This report does not cover the whole document. Where something was not judged, that nothing is reported means nothing."
	if d.items() && len(d.Result.Missing) > 0 {
		text = "Not every item was worked on to its end."
	}
	if !d.Result.Reason.None() {
		text = "Reason: " + strings.TrimSuffix(d.Result.Reason.Cause, ".") + ". " + text
	}
	if len(d.Result.Missing) > 0 && d.notRead() != "" {
		text += fmt.Sprintf(" Besides, %s.", d.notRead())
	}
	if (d.Result.Status == pipeline.JobPartial && len(d.Result.Missing) > 0) || (d.Result.Status == pipeline.JobFailed && d.Result.Counts.Cells > 0) {
		text += fmt.Sprintf(" What is missing can be asked for again: %s", cmp.Or(d.Redrive, "holdfast redrive "+string(d.Result.Job.ID)))
	}
	return text
}

// money is what was spent, in one sentence.
func (d Data) money() string {
	cost := d.Result.Spend.Cost
	name := d.Model.PricedAs
	switch {
	case d.Model.Free && name != "":
		return fmt.Sprintf("%s: $0 spent; at %s's price it would have been %s.", d.modelName(), name, cost)
	case d.Model.Free:
		return fmt.Sprintf("%s: $0 spent.", d.modelName())
	case d.items() && cost == 0:
		return "The work is said to cost nothing."
	case d.items():
		return fmt.Sprintf("%s by what a try is said to cost.", cost)
	default:
		return fmt.Sprintf("%s spent on %s.", cost, d.modelName())
	}
}

func (d Data) modelName() string {
	if d.Model.Name == "" {
		return d.Result.Job.Model
	}
	return d.Model.ID()
}
