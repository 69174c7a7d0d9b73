package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"holdfast/pkg/pipeline"
)

// Answer is one cell of a call that makes no findings: what was answered, or why nothing was. Start and End are the
// chunk's, in bytes of the stored text.
type Answer struct {
	Chunk   int                `json:"chunk"`
	Start   int                `json:"start"`
	End     int                `json:"end"`
	Line    int                `json:"line,omitempty"` // of the file, from 1, where each chunk is a line of it
	About   string             `json:"about"`          // how the chunk's text begins
	Call    string             `json:"call"`
	State   pipeline.CellState `json:"state"`
	Key     pipeline.ReplyKey  `json:"key,omitempty"`
	Text    string             `json:"text"`
	Value   *float64           `json:"value,omitempty"`
	Cost    pipeline.Money     `json:"cost"`             // of the answer, when it was made, in billionths of a dollar
	Reused  bool               `json:"reused,omitempty"` // another job had paid for it
	Tries   int                `json:"tries,omitempty"`
	Failure pipeline.Failure   `json:"failure,omitzero"`
}

// Bounds of what is shown of the answers in a page; the file has all of them, whole.
const (
	mostAnswers = 300
	answerBytes = 400
	aboutBytes  = 120
)

// About is the beginning of a chunk's text on one line, to tell chunks apart.
func About(text string, c pipeline.Chunk) string {
	if c.Start < 0 || c.End > len(text) || c.Start > c.End {
		return ""
	}
	begin := pipeline.Cut(text[c.Start:c.End], 4*aboutBytes)
	return cut(strings.Join(strings.Fields(begin), " "), aboutBytes)
}

// cut shortens a text and shows that it did.
func cut(text string, n int) string {
	if short := pipeline.Cut(text, n); len(short) < len(text) {
		return short + " …"
	}
	return text
}

// JSONLines writes every answer that is no finding, one JSON object a line: chunk by chunk, in the definition's order.
func JSONLines(w io.Writer, d Data) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for a, err := range d.answers() {
		if err == nil {
			err = enc.Encode(a)
		}
		if err != nil {
			return fmt.Errorf("write the answers of job %s: %w", d.Result.Job.ID, err)
		}
	}
	return nil
}

func (d Data) answers() func(yield func(Answer, error) bool) {
	if d.Answers == nil {
		return func(func(Answer, error) bool) {}
	}
	return d.Answers
}

// shownAnswer is an answer as a page shows it.
type shownAnswer struct {
	Answer
	Title string
	Short string // its text, or why there is none, bounded
	Lacks bool
	Plain bool // as a program wrote it, line by line; else in words
}

// answerGroup is what is shown of one chunk's answers.
type answerGroup struct {
	Chunk   int
	About   string
	Answers []shownAnswer
}

// shownAnswers is the first answers by chunk, and how many cells there are of calls without findings.
func (d Data) shownAnswers() (groups []answerGroup, shown, all int, err error) {
	all = len(d.quiet()) * len(d.Result.Manifest.Chunks)
	for a, err := range d.answers() {
		if err != nil {
			return nil, 0, all, fmt.Errorf("read the answers of job %s: %w", d.Result.Job.ID, err)
		}
		if shown == mostAnswers {
			break
		}
		shown++
		if n := len(groups); n == 0 || groups[n-1].Chunk != a.Chunk {
			groups = append(groups, answerGroup{Chunk: a.Chunk, About: a.About})
		}
		last := &groups[len(groups)-1]
		last.Answers = append(last.Answers, d.show(a))
	}
	return groups, shown, all, nil
}

func (d Data) show(a Answer) shownAnswer {
	call, _, _ := d.Definition.Find(a.Call)
	s := shownAnswer{Answer: a, Title: call.Title, Lacks: a.State == pipeline.CellFailed || a.State == pipeline.CellNotAsked}
	if s.Title == "" {
		s.Title = a.Call
	}
	switch {
	case s.Lacks:
		s.Short = "No answer: " + a.Failure.String()
	case a.State == pipeline.CellGated:
		s.Short = "Not needed."
	default:
		s.Short, s.Plain = inWords(a.Text)
		s.Short = cut(s.Short, answerBytes)
	}
	return s
}

// quiet is the calls that make no findings: their answers are shown as they are.
func (d Data) quiet() []pipeline.Call {
	var calls []pipeline.Call
	for _, stage := range d.Definition.Stages {
		for _, call := range stage.Calls {
			if call.Findings == "" {
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// inWords is a JSON object as "name: value; name: value" in its own order; any other text stays as it is.
func inWords(text string) (words string, plain bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return strings.TrimSpace(text), true
	}
	var parts []string
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return strings.TrimSpace(text), true
		}
		parts = append(parts, fmt.Sprintf("%v: %s", name, valueWords(value)))
	}
	return strings.Join(parts, "; "), false
}

func valueWords(value json.RawMessage) string {
	var read any
	if json.Unmarshal(value, &read) != nil {
		return string(value)
	}
	switch v := read.(type) {
	case string:
		return strings.Join(strings.Fields(v), " ")
	case []any:
		if len(v) == 0 {
			return "none"
		}
		var texts []string
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return string(value)
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, ", ")
	}
	return string(value)
}
