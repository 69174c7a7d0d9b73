package review

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

const findingsSchema = `{"type":"object","additionalProperties":false,"required":["score","findings"],"properties":{
 "score":{"type":"integer","minimum":0,"maximum":100},
 "note":{"type":"string"},
 "findings":{"type":"array","items":{"type":"object","additionalProperties":false,
  "required":["severity","title","quote","rationale"],
  "properties":{"category":{"type":"string"},"severity":{"type":"string"},"title":{"type":"string"},"quote":{"type":"string"},
   "rationale":{"type":"string"},"suggested_redline":{"type":"string"},"confidence":{"type":"number"}}}}}}`

var ask = pipeline.Call{ID: "check.cap", Prompt: "ask", Schema: "findings", MaxTokens: 100, Category: "liability", Analyst: "lawyer", Value: "score", Findings: "findings"}

func definition() pipeline.Definition {
	return pipeline.Definition{
		Name: "review", Version: "1", System: "You review.", Shared: "[{{.Heading}}] {{.Context}}|{{.Text}}",
		Stages:     []pipeline.Stage{{Name: "check", Calls: []pipeline.Call{ask}}},
		Prompts:    map[string]string{"ask": "Is there a cap?"},
		Schemas:    map[string]json.RawMessage{"findings": json.RawMessage(findingsSchema)},
		Categories: []pipeline.Category{{ID: "liability"}, {ID: "term"}},
		Chunking:   pipeline.Chunking{Target: 100, Max: 130, MaxChunks: 10},
	}
}

const (
	good    = `{"score": 7, "findings": [{"severity": "high", "title": "No cap", "quote": "in no event", "rationale": "none"}]}`
	nothing = `{"score": 0, "findings": []}`
)

// Each answer has one verdict: taken as it is, taken as repaired, or refused with the reason for the next ask.
func TestCaseM13Answers(t *testing.T) {
	const (
		accept = "accept"
		repair = "repair"
		reject = "reject"
	)
	noted := func(note string) string { return `{"score": 1, "findings": [], "note": "` + note + `"}` }
	finding := func(fields string) string { return `{"score": 1, "findings": [{` + fields + `}]}` }
	for _, c := range []struct{ name, text, verdict, want string }{ // want: the JSON kept, or what the reason says
		{"plain", good, accept, good},
		{"white space around", "\n  " + good + "\n", accept, good},
		{"a byte order mark", "\ufeff" + nothing, repair, nothing},
		{"a fence with its language", "```json\n" + good + "\n```", repair, good},
		{"a fence without", "```\n" + nothing + "\n```", repair, nothing},
		{"prose before", "Here is the JSON you asked for:\n" + nothing, repair, nothing},
		{"prose behind, with a bracket", nothing + "\n\nSee clause [1] and (2).", repair, nothing},
		{"prose before, with braces", "For {this} chunk: " + nothing, repair, nothing},
		{"backticks inside of strings", noted("use ```json fences```"), accept, noted("use ```json fences```")},
		{"a fence around backticks inside of strings", "```\n" + noted("a ``` b") + "\n```", repair, noted("a ``` b")},
		{"braces inside of strings", noted(`{\"a\": [}`), accept, noted(`{\"a\": [}`)},
		{"a line break inside of a string", noted("one\ntwo"), repair, noted(`one\ntwo`)},
		{"a tab inside of a string", noted("one\ttwo"), repair, noted(`one\ttwo`)},
		{"a comma too many in an array", `{"score": 1, "findings": [],}`, repair, `{"score": 1, "findings": []}`},
		{"a comma before a bracket inside of a string", noted(",]"), accept, noted(",]")},
		{"an escaped quote", noted(`\"quoted\"`), accept, noted(`\"quoted\"`)},
		{"an escaped emoji", noted(`\ud83d\ude00`), accept, noted(`\ud83d\ude00`)},
		{"an escaped backslash before u", noted(`\\ud83d`), accept, noted(`\\ud83d`)},
		{"the same object twice", nothing + "\n" + nothing, repair, nothing},
		{"two different objects", nothing + "\n" + good, reject, "two different"},
		{"a broken object before a good one", `{"score": NaN, "findings": []} ` + nothing, reject, "not JSON"},
		{"an inner object of one that is cut", `{"score": 1, "findings": [{"severity": "high"}, {"sev`, reject, "not complete"},
		{"an array around the object", "[" + nothing + "]", reject, "object"},
		{"an array around in prose", "Result: [" + nothing + "] done", reject, "array"},
		{"a closing brace too many", nothing + "}", reject, "closing brace"},
		{"a name twice", `{"score": 1, "score": 2, "findings": []}`, reject, `"score" stands twice`},
		{"a name twice, inside", finding(`"severity": "high", "severity": "low", "title": "t", "quote": "q", "rationale": "r"`), reject, "twice"},
		{"a name in another case", `{"Score": 1, "findings": []}`, reject, "score"},
		{"a name in another case beside the right one", `{"score": 1, "Score": 2, "findings": []}`, reject, "Score"},
		{"an unknown name", `{"score": 1, "findings": [], "mood": "good"}`, reject, "mood"},
		{"a missing name", `{"findings": []}`, reject, "score"},
		{"a number as a text", `{"score": "1", "findings": []}`, reject, "/score"},
		{"a number out of its range", `{"score": 101, "findings": []}`, reject, "/score"},
		{"NaN", `{"score": NaN, "findings": []}`, reject, "not JSON"},
		{"a number beyond all", `{"score": 1e999, "findings": []}`, reject, "out of range"},
		{"an exponent that would fill the memory", `{"score": 1e-999999999, "findings": []}`, reject, "score"},
		{"an unknown severity", finding(`"severity": "severe", "title": "t", "quote": "q", "rationale": "r"`), reject, `severity "severe"`},
		{"a severity in another case", finding(`"severity": "High", "title": "t", "quote": "q", "rationale": "r"`), reject, `severity "High"`},
		{"an unknown category", finding(`"category": "other", "severity": "high", "title": "t", "quote": "q", "rationale": "r"`), reject, `category "other"`},
		{"a known category", finding(`"category": "term", "severity": "high", "title": "t", "quote": "q", "rationale": "r"`), accept, finding(`"category": "term", "severity": "high", "title": "t", "quote": "q", "rationale": "r"`)},
		{"null for the list", `{"score": 1, "findings": null}`, reject, "/findings"},
		{"null for the answer", "null", reject, "object"},
		{"a text for the answer", `"nothing found"`, reject, "object"},
		{"empty", "", reject, "empty"},
		{"white space", " \n\t", reject, "empty"},
		{"prose alone", "I found nothing.", reject, "no JSON object"},
		{"an empty fence", "```json\n```", reject, "no JSON object"},
		{"a NUL", noted("a\x00b"), reject, "NUL"},
		{"an escaped NUL", noted(`a\u0000b`), reject, "NUL"},
		{"half of a surrogate pair", noted(`\ud83d`), reject, "surrogate"},
		{"the wrong half", noted(`\ude00`), reject, "surrogate"},
		{"a pair in the wrong order", noted(`\ude00\ud83d`), reject, "surrogate"},
		{"half of a pair before another escape", noted(`\ud83d\n`), reject, "surrogate"},
		{"not UTF-8", noted("a\xff"), reject, "UTF-8"},
		{"single quotes", `{'score': 1, 'findings': []}`, reject, "not JSON"},
		{"a comment", `{"score": 1, /* none */ "findings": []}`, reject, "not JSON"},
		{"a text of 10 MB", noted(strings.Repeat("x", 10<<20)), reject, "bytes"},
		{"a nest of 100,000 arrays", noted("") + strings.Repeat("[", 100_000), repair, noted("")},
		{"deep inside", `{"score": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `, "findings": []}`, reject, "deeper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			clean, repaired, err := New().Check(definition(), ask, c.text)
			got := accept
			switch {
			case err != nil:
				got = reject
			case repaired:
				got = repair
			}
			if got != c.verdict {
				t.Fatalf("got %s (%v), want %s", got, err, c.verdict)
			}
			if err == nil && clean != c.want {
				t.Errorf("got %q, want %q", clean, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*pipeline.MaxDetail) {
				t.Errorf("got %q, want %q in it, and no more than a person reads", err, c.want)
			}
		})
	}
}

func TestSchemaThatIsNone(t *testing.T) {
	d := definition()
	d.Schemas["findings"] = json.RawMessage(`{"type": 7}`)
	if _, _, err := New().Check(d, ask, nothing); err == nil || !strings.Contains(err.Error(), "schema findings") {
		t.Errorf("got %v, want an error that names the schema", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{good, nothing, "```json\n" + good + "\n```", `{"score": 1, "findings": [],}`, "{see} " + nothing, `{"a": "\ud83d"}`, "[1] {", nothing + nothing} {
		f.Add(seed)
	}
	r, d := New(), definition()
	f.Fuzz(func(t *testing.T, text string) {
		clean, repaired, err := r.Check(d, ask, text)
		if err != nil {
			if err.Error() == "" || clean != "" || repaired {
				t.Fatalf("got %q and %v beside the error %v", clean, repaired, err)
			}
			return
		}
		if !json.Valid([]byte(clean)) || strings.Contains(clean, "\x00") {
			t.Fatalf("kept %q", clean)
		}
		again, repairedAgain, err := r.Check(d, ask, clean)
		if err != nil || repairedAgain || again != clean {
			t.Fatalf("what was kept is not taken as it is: %q, %v", again, err)
		}
		if _, _, err := r.Read(request(d, "In no event. The end."), ask, pipeline.Reply{Text: clean}); err != nil {
			t.Fatalf("what was kept cannot be read: %v", err)
		}
	})
}
