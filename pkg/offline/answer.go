package offline

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"holdfast/pkg/pipeline"
)

// question is a request, taken apart: nothing but the request may have a say in the answer.
type question struct {
	call      string // the id in the prompt's first line, "" if there is none
	prompt    string
	text      *text
	playbook  []position
	replies   []reply
	maxTokens int
}

// position is one check of the playbook, as the prompt shows it.
type position struct {
	id, category, title, question string
	preferred, acceptable, reject string
	severity                      pipeline.Severity
}

// reply is an earlier answer that the prompt shows.
type reply struct{ call, text string }

// finding is one entry of an answer.
type finding struct {
	Category   string            `json:"category"`
	Severity   pipeline.Severity `json:"severity"`
	Title      string            `json:"title"`
	Quote      string            `json:"quote"`
	Rationale  string            `json:"rationale"`
	Redline    string            `json:"suggested_redline"`
	Confidence float64           `json:"confidence"`
}

var errNoAnswer = errors.New("no answer fits the schema")

// answerBy is the JSON text for a request; nil is the classifier that ships. Calls of the contract review are answered by
// rules; where that does not fit the schema, and for every other call, the answer is a generic one that does.
func answerBy(c *Classifier, r pipeline.Request) (string, error) {
	q := ask(c, r)
	check, err := compileSchema(r.Schema)
	if err != nil {
		return "", err
	}
	if value := q.review(); value != nil {
		body, err := json.Marshal(value)
		if err == nil && check.valid(body) {
			return string(body), nil
		}
	}
	return q.generic(check)
}

// review answers the calls of the contract review; nil for any other.
func (q question) review() any {
	kind, rest, _ := strings.Cut(q.call, ".")
	switch {
	case q.call == "prime":
		return q.prime()
	case kind == "score":
		return q.score(rest)
	case kind == "check" && len(q.playbook) == 1:
		analyst, _, _ := strings.Cut(rest, ".")
		return q.fit(q.check(analyst))
	case kind == "consolidate" && len(q.playbook) > 0:
		return q.fit(merge(q.check(rest)))
	case kind == "consolidate":
		return q.fit(q.consolidate())
	case kind == "verify":
		return q.verify(rest)
	}
	return nil
}

var (
	callLine  = regexp.MustCompile(`^\s*Call: ([A-Za-z0-9._-]+)`)
	playbook  = regexp.MustCompile(`(?s)\n\[PLAYBOOK BEGINS\]\n(.*?)\n\[PLAYBOOK ENDS\]`)
	replyText = regexp.MustCompile(`(?m)^\[REPLY OF ([A-Za-z0-9._-]+)\]$`)
	beginMark = regexp.MustCompile(`(?m)^\[([A-Z ]+) BEGINS?\]$`)
)

func ask(c *Classifier, r pipeline.Request) question {
	q := question{prompt: r.Prompt, maxTokens: r.MaxTokens, text: texts.of(documentPart(r), c)}
	if m := callLine.FindStringSubmatch(r.Prompt); m != nil {
		q.call = m[1]
	}
	if m := playbook.FindStringSubmatch(r.Prompt); m != nil {
		q.playbook = readPositions(m[1])
	}
	q.replies = readReplies(r.Prompt)
	return q
}

// documentPart is what stands between the markers of the shared part: from the first that begins anything but context
// to the last that ends it. All of it, or else the prompt, when there are no markers.
func documentPart(r pipeline.Request) string {
	for _, m := range beginMark.FindAllStringSubmatchIndex(r.Shared, 3) {
		name := r.Shared[m[2]:m[3]]
		if name == "CONTEXT" {
			continue
		}
		rest := strings.TrimPrefix(r.Shared[m[1]:], "\n")
		end := max(strings.LastIndex(rest, "\n["+name+" END]"), strings.LastIndex(rest, "\n["+name+" ENDS]"))
		if end >= 0 {
			return rest[:end]
		}
		return rest
	}
	if strings.TrimSpace(r.Shared) == "" {
		return r.Prompt
	}
	return r.Shared
}

// readPositions reads `key: value` lines; `- ` begins another position.
func readPositions(block string) []position {
	var all []position
	for _, line := range strings.Split(block, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "- ") || len(all) == 0 {
			all = append(all, position{})
			trimmed = strings.TrimPrefix(trimmed, "- ")
		}
		key, value, _ := strings.Cut(trimmed, ": ")
		all[len(all)-1].set(key, value)
	}
	return all
}

func (p *position) set(key, value string) {
	switch key {
	case "id":
		p.id = value
	case "category":
		p.category = value
	case "title":
		p.title = value
	case "question":
		p.question = value
	case "preferred":
		p.preferred = value
	case "acceptable":
		p.acceptable = value
	case "reject":
		p.reject = value
	case "severity":
		p.severity = pipeline.Severity(value)
	}
}

func readReplies(prompt string) []reply {
	var all []reply
	marks := replyText.FindAllStringSubmatchIndex(prompt, -1)
	for i, m := range marks {
		end := len(prompt)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		} else if j := strings.LastIndex(prompt, "\n[REPLIES END]"); j > m[1] {
			end = j
		}
		all = append(all, reply{call: prompt[m[2]:m[3]], text: strings.TrimSpace(prompt[m[1]:end])})
	}
	return all
}

// shown are the findings of the replies that the prompt shows.
func (q question) shown() []finding {
	var all []finding
	for _, r := range q.replies {
		var body struct{ Findings []finding }
		if json.Unmarshal([]byte(r.text), &body) == nil { // what is not JSON has no findings
			all = append(all, body.Findings...)
		}
	}
	return all
}
