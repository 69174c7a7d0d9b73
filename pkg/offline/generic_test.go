package offline

import (
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

const tickets = "Ticket 1: Thanks, all is fine.\n\nTicket 2: Since the update the export does not work at all and we pay for it.\n\nTicket 3: We will cancel and want our money back."

func TestAnotherPipeline(t *testing.T) {
	d := definition(t, "../pipelines/examples/support-tickets.yaml", "")
	all := askAll(t, New(Config{}), d, chunk{text: tickets})
	for _, a := range all {
		check, err := compileSchema(a.request.Schema)
		if err != nil || !check.valid([]byte(a.reply)) {
			t.Errorf("%s: %s does not fit its schema: %v", a.call.ID, a.reply, err)
		}
	}
	t.Run("a finding quotes the sentence that shares words with the question", func(t *testing.T) {
		if got := all[0].reply; !strings.Contains(got, "does not work at all") || !strings.Contains(tickets, "Since the update the export does not work at all and we pay for it.") {
			t.Errorf("got %s, want a quote about the export", got)
		}
	})
}

func TestGenericAnswersFitTheirSchema(t *testing.T) {
	for _, schema := range []string{
		``,
		`{"type":"object"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":50}}}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":3}}}`,
		`{"type":"object","required":["a","b"],"properties":{"a":{"enum":["x","y"]},"b":{"const":7}}}`,
		`{"type":"object","required":["n","m"],"properties":{"n":{"type":"integer","exclusiveMinimum":4},"m":{"type":"number","maximum":-2}}}`,
		`{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":7,"multipleOf":5}}}`,
		`{"type":"object","required":["l"],"properties":{"l":{"type":"array","minItems":2,"items":{"type":"boolean"}}}}`,
		`{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":["null","string"]}}}`,
		`{"type":"object","properties":{"x":{"anyOf":[{"type":"integer"},{"type":"string"}]},"y":{"allOf":[{"type":"object","required":["z"]},{"properties":{"z":{"type":"boolean"}}}]}}}`,
		`{"type":"object","properties":{"self":{"$ref":"#"}}}`,
		`{"type":"object","required":["date"],"additionalProperties":{"type":"string"}}`,
	} {
		for _, shared := range []string{tickets, "", "x"} {
			body, err := answer(pipeline.Request{Shared: shared, Prompt: "Which export did not work?", Schema: []byte(schema)})
			check, compileErr := compileSchema([]byte(schema))
			if err != nil || compileErr != nil || !check.valid([]byte(body)) {
				t.Errorf("schema %s: got %s, %v, %v", schema, body, err, compileErr)
			}
		}
	}
	t.Run("what cannot be answered is refused as invalid, not made up", func(t *testing.T) {
		r := pipeline.Request{Prompt: "?", Schema: []byte(`{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^\\d{4}$"}}}`)}
		_, err := New(Config{}).Complete(t.Context(), r)
		if kind := kindOf(err); kind != pipeline.Invalid {
			t.Errorf("got %v, want a failure of kind invalid", err)
		}
	})
	t.Run("a known call id with a schema of its own gets a generic answer", func(t *testing.T) {
		body, err := answer(pipeline.Request{Shared: tickets, Prompt: "Call: prime\n", Schema: []byte(`{"type":"object","required":["mood"],"properties":{"mood":{"enum":["good","bad"]}},"additionalProperties":false}`)})
		if err != nil || body != `{"mood":"good"}` {
			t.Errorf("got %s, %v", body, err)
		}
	})
}

func TestAnAnswerKeepsTheGravestThatItsTokensAllow(t *testing.T) {
	q := question{maxTokens: 150}
	all := []finding{{Title: "low", Severity: pipeline.Low, Rationale: strings.Repeat("x", 300)}, {Title: "high", Severity: pipeline.High, Rationale: strings.Repeat("y", 300)}}
	if got := q.fit(all).Findings; len(got) != 1 || got[0].Title != "high" {
		t.Errorf("got %+v, want the grave one alone", got)
	}
}
