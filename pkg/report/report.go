// Package report shows a job's result to people: one HTML file, Markdown, and JSON for programs.
//
// It may decide: how a result looks, and in which words. It may not: judge. What is missing is said as loudly as what
// was found, and a category that was not judged in full is never said to be clean.
package report

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// Data is what a report is made of. A job that failed without a result has a Result of its job and status alone.
type Data struct {
	Result     pipeline.Result
	Text       string          // the whole document; "" if it was never split
	Origin     pipeline.Origin // where the text stood in what was submitted; may be left out
	Definition pipeline.Definition
	Model      pipeline.ModelInfo
	Journals   []pipeline.Journal       // of all tasks, for the timeline of tries; may be left out
	Before     *pipeline.Result         // what was reported before the last redrive, where it is still known
	Answers    iter.Seq2[Answer, error] // of the calls that make no findings; nil if nobody reads them
	Generated  pipeline.Instant
	Redrive    string // the command that asks again for what is missing; "" = holdfast redrive JOB
}

// row is one line of a table about a category or an analyst.
type row struct {
	Title      string
	Findings   int
	Severities []severityCount
	Asked      int // cells
	Missing    int // of them
	Verdict    string
	Whole      bool // everything about it was judged
	Quiet      bool // it makes no findings
}

type severityCount struct {
	Severity pipeline.Severity
	Count    int
}

// bySeverity counts findings, gravest first; severities without any are left out.
func bySeverity(findings []pipeline.Finding) []severityCount {
	var counts []severityCount
	for _, severity := range pipeline.Severities {
		n := 0
		for _, f := range findings {
			if f.Severity == severity {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, severityCount{severity, n})
		}
	}
	return counts
}

// judged counts the cells of the calls that a test picks, and how many of them are missing.
func (d Data) judged(about func(pipeline.Call) bool) (asked, missing int) {
	picked := map[string]bool{}
	for _, stage := range d.Definition.Stages {
		for _, call := range stage.Calls {
			if about(call) {
				picked[call.ID] = true
			}
		}
	}
	for _, cell := range d.Result.Missing {
		if picked[cell.Call] {
			missing++
		}
	}
	return len(picked) * len(d.Result.Manifest.Chunks), missing
}

// mostQuestions is how many calls a pipeline without categories may have to have a line for each.
const mostQuestions = 60

// categories is a line for each category of the definition; a definition without any has one for each of its calls.
func (d Data) categories() []row {
	var rows []row
	for _, category := range d.Definition.Categories {
		r := d.row(category.Title, func(f pipeline.Finding) bool { return f.Category == category.ID }, func(c pipeline.Call) bool {
			return c.About(category.ID)
		})
		rows = append(rows, r)
	}
	if len(rows) > 0 || d.items() || d.Definition.Calls() > mostQuestions {
		return rows
	}
	for _, stage := range d.Definition.Stages {
		for _, call := range stage.Calls {
			r := d.row(call.Title, func(f pipeline.Finding) bool { return f.Call == call.ID }, func(c pipeline.Call) bool { return c.ID == call.ID })
			r.Quiet = call.Findings == ""
			rows = append(rows, r.quietly(d))
		}
	}
	return rows
}

// byWhat names the table of categories.
func (d Data) byWhat() string {
	if len(d.Definition.Categories) > 0 {
		return "Category"
	}
	return "Question"
}

// quietly has no word of findings where none could be made.
func (r row) quietly(d Data) row {
	if r.Quiet && r.Whole {
		r.Verdict = fmt.Sprintf("Answered for each %s.", d.part())
	}
	return r
}

func (d Data) analysts() []row {
	var rows []row
	for _, analyst := range d.Definition.Analysts {
		mine := map[string]bool{}
		for _, stage := range d.Definition.Stages {
			for _, call := range stage.Calls {
				mine[call.ID] = call.Analyst == analyst.ID
			}
		}
		r := d.row(analyst.Title,
			func(f pipeline.Finding) bool { return f.Analyst == analyst.ID || (f.Analyst == "" && mine[f.Call]) },
			func(c pipeline.Call) bool { return c.Analyst == analyst.ID })
		rows = append(rows, r)
	}
	return rows
}

func (d Data) row(title string, found func(pipeline.Finding) bool, about func(pipeline.Call) bool) row {
	var findings []pipeline.Finding
	for _, f := range d.Result.Findings {
		if found(f) {
			findings = append(findings, f)
		}
	}
	r := row{Title: title, Findings: len(findings), Severities: bySeverity(findings)}
	r.Asked, r.Missing = d.judged(about)
	r.Whole = r.Asked > 0 && r.Missing == 0 && d.notRead() == ""
	switch {
	case r.Asked == 0:
		r.Verdict = "Not judged."
	case r.Missing == r.Asked:
		r.Verdict = fmt.Sprintf("Not judged: none of %s has an answer.", d.asked(r.Asked))
	case r.Missing > 0:
		r.Verdict = fmt.Sprintf("Not judged in full: %s of %s have no answer%s.", pipeline.Count(r.Missing), d.asked(r.Asked), d.behind(", and "))
	case d.notRead() != "":
		r.Verdict = fmt.Sprintf("Not judged in full: %s.", d.notRead())
	case r.Findings == 0 && d.Model.Placeholders > 0:
		r.Verdict = fmt.Sprintf("%s answered, by placeholders at least in part: that says nothing about the text.", d.asked(r.Asked))
	case r.Findings == 0:
		r.Verdict = fmt.Sprintf("Nothing found in %s.", d.asked(r.Asked))
	case d.Result.Counts.Gated > 0:
		r.Verdict = fmt.Sprintf("Each of %s answered or not needed.", d.asked(r.Asked))
	default:
		r.Verdict = fmt.Sprintf("%s answered, none is missing.", d.asked(r.Asked))
	}
	return r
}

// gap is the cells that are missing for one reason, for people.
type gap struct {
	pipeline.Gap
	Chunks []int
}

func (d Data) gaps() []gap {
	var gaps []gap
	for _, g := range pipeline.Gaps(d.Result.Missing) {
		shown := gap{Gap: g}
		for _, task := range g.Tasks {
			shown.Chunks = append(shown.Chunks, task.Number())
		}
		gaps = append(gaps, shown)
	}
	return gaps
}

// title says what a finding is about, for people: its category, or its call where the pipeline has no categories.
func (d Data) title(f pipeline.Finding) string {
	for _, c := range d.Definition.Categories {
		if c.ID == f.Category && c.Title != "" {
			return c.Title
		}
	}
	if call, _, ok := d.Definition.Find(f.Call); ok && f.Category == "" {
		return call.Title
	}
	return f.Category
}

// titles are the names of calls for people, each once.
func (d Data) titles(calls []string) []string {
	var titles []string
	for _, id := range calls {
		title := id
		if call, _, ok := d.Definition.Find(id); ok && call.Title != "" {
			title = call.Title
		}
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
	}
	return titles
}

func (d Data) analyst(f pipeline.Finding) string {
	id := f.Analyst
	if id == "" {
		call, _, _ := d.Definition.Find(f.Call)
		id = call.Analyst
	}
	for _, a := range d.Definition.Analysts {
		if a.ID == id && a.Title != "" {
			return a.Title
		}
	}
	return id
}

// place says where a finding stands, for people.
func place(f pipeline.Finding) string {
	switch {
	case f.Match == pipeline.MatchAbsence:
		return fmt.Sprintf("the whole document: each of %d chunks was judged", len(f.Chunks))
	case f.Match == pipeline.MatchUngrounded:
		return "its quote is not in the text"
	case f.Clause != "":
		return fmt.Sprintf("%s, chunk %d", f.Clause, f.Chunk)
	default:
		return fmt.Sprintf("chunk %d", f.Chunk)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// some is the first few of a list, and how many more there are.
func some[T any](all []T, most int) string {
	var shown []string
	for _, v := range all[:min(len(all), most)] {
		shown = append(shown, fmt.Sprint(v))
	}
	text := strings.Join(shown, ", ")
	if more := len(all) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %s more", pipeline.Count(more))
	}
	return text
}
