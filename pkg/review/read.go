package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// Read takes the value and the findings of a reply that Check let pass. A finding whose quote stands in the context
// alone is left out: the chunk before has it in its core.
func (r *Reviewer) Read(s pipeline.StageRequest, call pipeline.Call, reply pipeline.Reply) (value *float64, findings []pipeline.Finding, err error) {
	if s.Definition.Handler != "" {
		return nil, nil, nil // what a handler's answer means, its own program says
	}
	answer, err := parse(reply.Text)
	if err != nil {
		return nil, nil, err
	}
	if value, err = valueOf(call, answer); err != nil {
		return nil, nil, err
	}
	given, err := givenOf(call, answer)
	if err != nil || len(given) == 0 {
		return value, nil, err
	}
	if _, err := promptData(s); err != nil {
		return nil, nil, err
	}
	a := newAligner(s.Text, s.Chunk)
	for i, g := range given {
		if err := g.known(s.Definition); err != nil {
			return nil, nil, fmt.Errorf("%s[%d]: %w", call.Findings, i, err)
		}
		f := g.finding(s, call, reply)
		spot := a.find(g.quote)
		if spot.found() && spot.end <= s.Chunk.Start {
			continue
		}
		if spot.found() {
			f.Start, f.End, f.Match = spot.start, spot.end, spot.match
			f.Quote = s.Text[f.Start:f.End]
			f.Clause = clauseAt(s.Text, s.Chunk, f.Start)
		}
		f.ID = pipeline.FindingID(s.Job.Source, f)
		findings = append(findings, f)
	}
	return value, findings, nil
}

// given is a finding as the model gave it.
type given struct {
	category, severity, title, quote, rationale, suggestion string
	confidence                                              float64
}

// finding is what is stored of it before its quote has a place.
func (g given) finding(s pipeline.StageRequest, call pipeline.Call, reply pipeline.Reply) pipeline.Finding {
	category := g.category
	if category == "" {
		category = call.Category
	}
	return pipeline.Finding{
		State: pipeline.Provisional, Category: category, Analyst: call.Analyst, Call: call.ID,
		Severity: pipeline.Severity(g.severity), Title: g.title, Quote: g.quote, Start: -1, End: -1,
		Match: pipeline.MatchUngrounded, Rationale: g.rationale, Suggestion: g.suggestion,
		Confidence: min(max(g.confidence, 0), 1), Chunk: s.Chunk.Index, Model: reply.Model,
	}
}

// known says that category and severity are ones that the definition and the engine know.
func (g given) known(d pipeline.Definition) error {
	if severity := pipeline.Severity(g.severity); !severity.Valid() {
		return fmt.Errorf("severity %.60q is not one of %v", g.severity, pipeline.Severities)
	}
	if g.category == "" || len(d.Categories) == 0 {
		return nil
	}
	if !slices.ContainsFunc(d.Categories, func(c pipeline.Category) bool { return c.ID == g.category }) {
		return fmt.Errorf("there is no category %.60q", g.category)
	}
	return nil
}

// valueOf is the number that the call declares; nil if it declares none.
func valueOf(call pipeline.Call, answer map[string]any) (*float64, error) {
	if call.Value == "" {
		return nil, nil
	}
	number, ok := answer[call.Value].(json.Number)
	if !ok {
		return nil, fmt.Errorf("%s: a number is asked for", call.Value)
	}
	f, err := number.Float64()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.Value, err)
	}
	return &f, nil
}

// givenOf are the findings in the array that the call declares, as far as it is there.
func givenOf(call pipeline.Call, answer map[string]any) ([]given, error) {
	if call.Findings == "" {
		return nil, nil
	}
	value, there := answer[call.Findings]
	if !there { // its schema lets it be left out
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: an array is asked for", call.Findings)
	}
	all := make([]given, 0, len(list))
	for i, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s[%d]: an object is asked for", call.Findings, i)
		}
		g, err := givenFrom(object)
		if err != nil {
			return nil, fmt.Errorf("%s[%d].%w", call.Findings, i, err)
		}
		all = append(all, g)
	}
	return all, nil
}

// givenFrom reads the fields of one finding; names are matched exactly, what is missing is empty.
func givenFrom(object map[string]any) (given, error) {
	var g given
	for name, field := range map[string]*string{
		"category": &g.category, "severity": &g.severity, "title": &g.title, "quote": &g.quote,
		"rationale": &g.rationale, "suggested_redline": &g.suggestion,
	} {
		value, there := object[name]
		text, ok := value.(string)
		if there && !ok {
			return given{}, fmt.Errorf("%s: a text is asked for", name)
		}
		*field = strings.TrimSpace(text)
	}
	confidence, there := object["confidence"]
	if !there {
		return g, nil
	}
	number, ok := confidence.(json.Number)
	if !ok {
		return given{}, errors.New("confidence: a number is asked for")
	}
	var err error
	g.confidence, err = number.Float64()
	return g, err
}
