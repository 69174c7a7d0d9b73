package offline

import (
	"bytes"
	"strings"
	"testing"
	"text/template"

	"holdfast/pkg/pipeline"
)

// chunk is a part of a document with its context, cut roughly: at blank lines, about 4,500 characters.
type chunk struct{ text, context string }

func chunksOf(document string) []chunk {
	const size, overlap = 4500, 300
	var all []chunk
	begin := 0
	for begin < len(document) {
		end := min(begin+size, len(document))
		if i := strings.LastIndex(document[begin:end], "\n\n"); end < len(document) && i > size/2 {
			end = begin + i
		}
		all = append(all, chunk{document[begin:end], document[max(0, begin-overlap):begin]})
		begin = end
	}
	return all
}

// asked is what one call was asked and answered.
type asked struct {
	call    pipeline.Call
	request pipeline.Request
	reply   string
}

func render(t testing.TB, text string, data pipeline.PromptData) string {
	t.Helper()
	var b bytes.Buffer
	if err := template.Must(template.New("").Option("missingkey=error").Parse(text)).Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// askAll asks every call of a definition about one chunk, as the engine does.
func askAll(t testing.TB, m pipeline.Model, d pipeline.Definition, c chunk) []asked {
	t.Helper()
	var all []asked
	replies := map[string]string{}
	shared := render(t, d.Shared, pipeline.PromptData{Text: c.text, Context: c.context})
	for _, stage := range d.Stages {
		for _, call := range stage.Calls {
			uses := map[string]string{}
			for _, id := range call.Uses {
				uses[id] = replies[id]
			}
			r := pipeline.Request{
				System: d.System, Shared: shared, MaxTokens: call.MaxTokens, Schema: d.Schemas[call.Schema],
				Prompt: render(t, d.Prompts[call.Prompt], pipeline.PromptData{Vars: call.Vars, Replies: uses}),
			}
			r.Key = pipeline.KeyOf("t", m.Info().ID(), 0, r)
			response, err := m.Complete(t.Context(), r)
			if err != nil {
				t.Fatalf("call %s: %v", call.ID, err)
			}
			replies[call.ID] = response.Text
			all = append(all, asked{call, r, response.Text})
		}
	}
	return all
}
