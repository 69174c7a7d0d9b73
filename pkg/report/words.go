package report

import (
	"fmt"

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
	return pipeline.Count(n) + " " + plural(n, one)
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

func findings(n int) string { return pipeline.Count(n) + " " + plural(n, "finding") }

// plural is the word for so many of a thing.
func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}
