package review

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

// request is a stage about one chunk that is all of a text.
func request(d pipeline.Definition, text string) pipeline.StageRequest {
	return pipeline.StageRequest{Definition: d, Job: pipeline.Job{Source: "s"}, Text: text, Chunk: pipeline.Chunk{End: len(text), Heading: "1 Cap"}, Stage: 1}
}

func staged() pipeline.Definition {
	d := definition()
	score := pipeline.Call{ID: "score", Prompt: "ask", Schema: "findings", MaxTokens: 9, Value: "score"}
	gated := ask
	gated.Gate = &pipeline.Gate{Call: "score", Min: 20}
	gated.Vars = map[string]string{"question": "capped"}
	final := pipeline.Call{ID: "final", Prompt: "final", Schema: "findings", MaxTokens: 9, Uses: []string{"check.cap", "score"}, Gate: &pipeline.Gate{Call: "check.cap", Min: 0}}
	d.Prompts = map[string]string{
		"ask":   "Is it {{.Vars.question}}?",
		"final": "{{range $id, $text := .Replies}}{{$id}}={{$text}};{{else}}none{{end}}",
	}
	d.Stages = []pipeline.Stage{{Name: "score", Calls: []pipeline.Call{score}}, {Name: "check", Calls: []pipeline.Call{gated}}, {Name: "final", Calls: []pipeline.Call{final}}}
	return d
}

func TestQuestions(t *testing.T) {
	text := "Before it. The cap is low."
	s := request(staged(), text)
	s.Chunk = pipeline.Chunk{Index: 3, Context: 0, Start: 11, End: len(text), Heading: "1 Cap"}
	t.Run("a call is rendered with the chunk, its variables, and what its definition says", func(t *testing.T) {
		s := s
		s.Stage = 2
		questions, gated, err := New().Questions(s)
		if err != nil || len(questions) != 1 || len(gated) != 0 {
			t.Fatalf("got %d questions, %d gated, %v", len(questions), len(gated), err)
		}
		q := questions[0]
		if q.Chunk != 3 || q.Call.ID != "check.cap" || q.Request.Key != "" || q.Request.MaxTokens != 100 {
			t.Errorf("got %+v", q)
		}
		want := pipeline.Request{System: "You review.", Shared: "[1 Cap] Before it. |The cap is low.", Prompt: "Is it capped?"}
		if q.Request.System != want.System || q.Request.Shared != want.Shared || q.Request.Prompt != want.Prompt || string(q.Request.Schema) != findingsSchema {
			t.Errorf("got %+v, want %+v", q.Request, want)
		}
	})
	t.Run("a variable that a call has not is shown as nothing", func(t *testing.T) {
		questions, _, err := New().Questions(s)
		if err != nil || questions[0].Request.Prompt != "Is it ?" {
			t.Errorf("got %v, %v", questions, err)
		}
	})
	t.Run("a call shows the replies that it uses, and those that there are", func(t *testing.T) {
		s := s
		s.Stage = 3
		for _, c := range []struct {
			replies map[string]string
			want    string
		}{
			{map[string]string{"score": "{}", "check.cap": "[]", "other": "x"}, "check.cap=[];score={};"},
			{map[string]string{"score": "{}"}, "score={};"},
			{nil, "none"},
		} {
			s.Replies = c.replies
			questions, _, err := New().Questions(s)
			if err != nil || questions[0].Request.Prompt != c.want {
				t.Errorf("got %v, %v, want %q", questions, err, c.want)
			}
		}
	})
	t.Run("bad requests are told", func(t *testing.T) {
		for name, edit := range map[string]func(*pipeline.StageRequest){
			"no such stage":          func(s *pipeline.StageRequest) { s.Stage = 4 },
			"stage 0":                func(s *pipeline.StageRequest) { s.Stage = 0 },
			"a chunk beyond the end": func(s *pipeline.StageRequest) { s.Chunk.End = len(text) + 1 },
			"an empty chunk":         func(s *pipeline.StageRequest) { s.Chunk.End = s.Chunk.Start },
			"a broken template":      func(s *pipeline.StageRequest) { s.Definition.Prompts = map[string]string{"ask": "{{"} },
			"an unknown field":       func(s *pipeline.StageRequest) { s.Definition.Shared = "{{.Nope}}" },
		} {
			s := s
			edit(&s)
			if _, _, err := New().Questions(s); err == nil {
				t.Errorf("%s: got no error", name)
			}
		}
	})
}

func TestGates(t *testing.T) {
	s := request(staged(), "The cap is low.")
	number := func(f float64) *float64 { return &f }
	for _, c := range []struct {
		name  string
		stage int
		cells []pipeline.Cell
		gated bool
	}{
		{"a value under the least", 2, []pipeline.Cell{{Call: "score", State: pipeline.CellAnswered, Value: number(19.9)}}, true},
		{"a value that is enough", 2, []pipeline.Cell{{Call: "score", State: pipeline.CellAnswered, Value: number(20)}}, false},
		{"a call that failed decides nothing", 2, []pipeline.Cell{{Call: "score", State: pipeline.CellFailed}}, false},
		{"a call that was not asked decides nothing", 2, nil, false},
		{"an answer without a value decides nothing", 2, []pipeline.Cell{{Call: "score", State: pipeline.CellAnswered}}, false},
		{"a call that was gated itself", 3, []pipeline.Cell{{Call: "check.cap", State: pipeline.CellGated}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s
			s.Stage, s.Bodies = c.stage, []pipeline.StageBody{{Cells: c.cells}}
			questions, gated, err := New().Questions(s)
			if err != nil || len(questions)+len(gated) != 1 || (len(gated) == 1) != c.gated {
				t.Errorf("got %d questions and %d gated (%v), want gated %v", len(questions), len(gated), err, c.gated)
			}
		})
	}
}

func reply(t *testing.T, findings ...map[string]any) pipeline.Reply {
	t.Helper()
	body, err := json.Marshal(map[string]any{"score": 7, "findings": findings})
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Reply{Text: string(body), Model: "scripted@1"}
}

func sampleContract(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile("../pipelines/documents/cuad-worldwide-reseller.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestFindings(t *testing.T) {
	text := sampleContract(t)
	at := strings.Index(text, "6.5  LIMITATION OF LIABILITY")
	s := request(definition(), text)
	s.Chunk = pipeline.Chunk{Index: 9, Context: at - 600, Start: at - 200, End: at + 2500, Heading: "6 TERMS"}
	quote := strings.Join(strings.Fields(text[at+60:at+200]), " ")
	quote = quote[strings.Index(quote, " ")+1 : strings.LastIndex(quote, " ")]
	r := New()
	value, findings, err := r.Read(s, ask, reply(t,
		map[string]any{"severity": "high", "title": "Cap", "quote": quote, "rationale": "why", "suggested_redline": "better", "confidence": 1.5},
		map[string]any{"category": "term", "severity": "low", "title": "Invented", "quote": "words that nobody wrote", "rationale": "why", "confidence": 0.5},
		map[string]any{"severity": "info", "title": "Nothing", "quote": "", "rationale": "why"},
	))
	if err != nil || value == nil || *value != 7 || len(findings) != 3 {
		t.Fatalf("got value %v, %d findings, %v", value, len(findings), err)
	}
	t.Run("a quote is placed in the whole document and read from it", func(t *testing.T) {
		f := findings[0]
		if f.Match != pipeline.MatchNormalised || f.Start < at || text[f.Start:f.End] != f.Quote || strings.Join(strings.Fields(f.Quote), " ") != quote {
			t.Errorf("got %s %d to %d: %q, want %q", f.Match, f.Start, f.End, f.Quote, quote)
		}
		if f.Clause != "6.5 LIMITATION OF LIABILITY" {
			t.Errorf("got clause %q", f.Clause)
		}
	})
	t.Run("what the model left out comes from the call", func(t *testing.T) {
		f := findings[0]
		if f.Category != "liability" || f.Analyst != "lawyer" || f.Call != "check.cap" || f.Chunk != 9 || f.Model != "scripted@1" ||
			f.State != pipeline.Provisional || f.Suggestion != "better" || f.Confidence != 1 || f.ID == "" {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("a quote that is not there has no place", func(t *testing.T) {
		for _, f := range findings[1:] {
			if f.Match != pipeline.MatchUngrounded || f.Start != -1 || f.End != -1 || f.Clause != "" {
				t.Errorf("got %+v", f)
			}
		}
		if findings[1].Category != "term" || findings[1].Quote != "words that nobody wrote" {
			t.Errorf("got %+v", findings[1])
		}
	})
	t.Run("the same reply gives the same findings", func(t *testing.T) {
		_, again, err := r.Read(s, ask, reply(t, map[string]any{"severity": "high", "title": "Cap", "quote": quote, "rationale": "why", "suggested_redline": "better", "confidence": 1.5}))
		if err != nil || len(again) != 1 || again[0].ID != findings[0].ID {
			t.Errorf("got %v, %v", again, err)
		}
	})
}

// A chunk owns what begins in its core; what stands in its context alone is the chunk before's.
func TestOwner(t *testing.T) {
	text := "First clause here. The cap is low. It does not hold for a breach. Last clause."
	core := strings.Index(text, "It does")
	s := request(definition(), text)
	s.Chunk = pipeline.Chunk{Index: 1, Context: strings.Index(text, "The cap"), Start: core, End: len(text)}
	give := func(quote string) map[string]any {
		return map[string]any{"severity": "low", "title": "t", "quote": quote, "rationale": "r"}
	}
	_, findings, err := New().Read(s, ask, reply(t, give("cap is low"), give("does not hold"), give("The cap is low. It does not hold"), give("First clause")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range findings {
		got = append(got, f.Quote+" "+string(f.Match))
	}
	want := []string{"does not hold exact", "The cap is low. It does not hold exact", "First clause ungrounded"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRepliesThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":          "nothing",
		"no value":         `{"findings": []}`,
		"null for a list":  `{"score": 1, "findings": null}`,
		"no list":          `{"score": 1, "findings": {}}`,
		"no object":        `{"score": 1, "findings": ["x"]}`,
		"a wrong severity": `{"score": 1, "findings": [{"severity": "bad", "quote": "q"}]}`,
		"a wrong category": `{"score": 1, "findings": [{"severity": "low", "category": "bad"}]}`,
		"a wrong quote":    `{"score": 1, "findings": [{"severity": "low", "quote": 7}]}`,
		"wrong confidence": `{"score": 1, "findings": [{"severity": "low", "confidence": "high"}]}`,
	} {
		if _, _, err := New().Read(request(definition(), "The cap."), ask, pipeline.Reply{Text: text}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	t.Run("a list that the schema lets be left out is empty", func(t *testing.T) {
		value, findings, err := New().Read(request(definition(), "The cap."), ask, pipeline.Reply{Text: `{"score": 3}`})
		if value == nil || *value != 3 || len(findings) != 0 || err != nil {
			t.Errorf("got %v, %v, %v", value, findings, err)
		}
	})
	t.Run("a call without value and findings has neither", func(t *testing.T) {
		call := ask
		call.Value, call.Findings = "", ""
		value, findings, err := New().Read(request(definition(), "The cap."), call, pipeline.Reply{Text: `{"summary": "x"}`})
		if value != nil || findings != nil || err != nil {
			t.Errorf("got %v, %v, %v", value, findings, err)
		}
	})
}
