package report

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// offsetUnit names the units of the offsets in the JSON, in the JSON.
const offsetUnit = "start and end are bytes into the UTF-8 text; utf16_start and utf16_end are UTF-16 code units, as editors and browsers count; -1: no place in the text"

type jsonReport struct {
	Job        pipeline.JobID     `json:"job"`
	Run        int                `json:"run"`
	Epoch      int64              `json:"epoch"`
	Document   string             `json:"document"`
	Hash       string             `json:"document_sha256,omitempty"`
	Pipeline   string             `json:"pipeline"`
	Model      string             `json:"model"`
	Status     pipeline.JobStatus `json:"status"`
	Complete   bool               `json:"complete"` // every cell was answered, or not needed
	Headline   string             `json:"headline"`
	Caution    string             `json:"caution,omitempty"`
	Caveat     string             `json:"caveat,omitempty"`         // of which answers the model does not stand for
	Changed    string             `json:"changed,omitempty"`        // after a redrive
	Notes      []string           `json:"document_notes,omitempty"` // what of the document was not read, or read in its own way
	Unread     []pipeline.Unread  `json:"unread"`                   // parts of the document that were not read: it is not complete then
	Reason     pipeline.Failure   `json:"reason,omitzero"`
	Counts     pipeline.Counts    `json:"counts"`
	Offsets    string             `json:"offsets"`
	Findings   []jsonFinding      `json:"findings"`
	Categories []jsonRow          `json:"categories"`
	Analysts   []jsonRow          `json:"analysts,omitempty"`
	Withdrawn  []pipeline.Finding `json:"withdrawn"` // replaced by calls that report nothing there
	Answers    jsonAnswers        `json:"answers"`
	Gaps       []pipeline.Gap     `json:"gaps"` // what is missing, by reason
	Missing    []pipeline.Cell    `json:"missing"`
	Tasks      []pipeline.TaskEnd `json:"tasks"`
	Spend      pipeline.Spend     `json:"spend"`
	Free       bool               `json:"free"` // no money was spent: cost is what it would have been
	PricedAs   string             `json:"priced_as,omitempty"`
	Generated  string             `json:"generated,omitempty"`
}

// jsonAnswers says where the answers are that are no findings.
type jsonAnswers struct {
	File  string `json:"file"`
	Lines int    `json:"lines"` // one for each cell of a call without findings, answered or not
}

type jsonFinding struct {
	Number int `json:"number"`
	pipeline.Finding
	Source     string `json:"source,omitempty"` // where it stood in what was submitted: page 12
	UTF16Start int    `json:"utf16_start"`
	UTF16End   int    `json:"utf16_end"`
}

type jsonRow struct {
	Title    string `json:"title"`
	Findings int    `json:"findings"`
	Asked    int    `json:"questions"`
	Missing  int    `json:"missing"`
	Whole    bool   `json:"judged_in_full"`
}

// JSON writes the report for programs.
func JSON(w io.Writer, d Data) error {
	r := d.Result
	out := jsonReport{
		Job: r.Job.ID, Run: r.Job.Run, Epoch: r.Epoch, Document: r.Job.Name, Hash: r.Manifest.Document,
		Pipeline: r.Job.Pipeline, Model: d.modelName(), Status: r.Status,
		Complete: r.Status == pipeline.JobCompleted, Headline: d.headline(), Caution: d.caution(), Caveat: d.caveat(), Changed: d.changed(), Notes: r.Manifest.Notes, Unread: append([]pipeline.Unread{}, r.Manifest.Unread...), Reason: r.Reason,
		Counts: r.Counts, Offsets: offsetUnit, Findings: []jsonFinding{}, Categories: jsonRows(d.categories()), Analysts: jsonRows(d.analysts()),
		Withdrawn: append([]pipeline.Finding{}, r.Withdrawn...),
		Answers:   jsonAnswers{"answers.jsonl", len(d.quiet()) * len(r.Manifest.Chunks)},
		Gaps:      append([]pipeline.Gap{}, pipeline.Gaps(r.Missing)...), Missing: r.Missing, Tasks: r.Tasks, Spend: r.Spend, Free: d.Model.Free, PricedAs: d.Model.PricedAs,
	}
	if d.Generated != 0 {
		out.Generated = d.Generated.String()
	}
	if out.Missing == nil {
		out.Missing = []pipeline.Cell{}
	}
	units := newUnits(d.Text)
	for _, f := range d.number() {
		j := jsonFinding{Number: f.Number, Finding: f.Finding, Source: d.source(f.Finding), UTF16Start: -1, UTF16End: -1}
		if f.Placed {
			j.UTF16Start, j.UTF16End = units.at(f.Start), units.at(f.End)
		}
		out.Findings = append(out.Findings, j)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("write the findings of job %s: %w", r.Job.ID, err)
	}
	return nil
}

func jsonRows(rows []row) []jsonRow {
	out := []jsonRow{}
	for _, r := range rows {
		out = append(out, jsonRow{r.Title, r.Findings, r.Asked, r.Missing, r.Whole})
	}
	return out
}

// units counts UTF-16 code units up to a byte at which a character begins. It remembers every thousandth byte or so.
type units struct {
	text  string
	marks []int // units before byte n x unitStep, or the next character
	bytes []int
}

const unitStep = 1024

func newUnits(text string) units {
	u := units{text: text}
	n := 0
	for at := 0; at < len(text); {
		if at >= len(u.bytes)*unitStep {
			u.bytes, u.marks = append(u.bytes, at), append(u.marks, n)
		}
		c, size := utf8.DecodeRuneInString(text[at:])
		n += max(1, utf16.RuneLen(c))
		at += size
	}
	return u
}

func (u units) at(offset int) int {
	i := min(offset/unitStep, len(u.bytes)-1)
	if i < 0 {
		return 0
	}
	n := u.marks[i]
	for _, c := range u.text[u.bytes[i]:offset] {
		n += max(1, utf16.RuneLen(c))
	}
	return n
}
