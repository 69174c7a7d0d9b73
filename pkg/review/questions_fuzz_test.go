package review

import (
	"testing"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// A document and what replies said are data: they are shown as they are, once, and never read as a template.
func FuzzQuestions(f *testing.F) {
	f.Add("Before. The cap is low.", 8, "1 Cap", "a reply")
	f.Add("{{.Vars.question}} {{range .Replies}}{{end}}", 3, "{{.Text}}", `{{template "x"}}`)
	f.Add("{{", 0, "}}", "{{/*")
	f.Fuzz(func(t *testing.T, text string, start int, heading, reply string) {
		if !utf8.ValidString(text) || start < 0 || start >= len(text) || !utf8.RuneStart(text[start]) {
			return
		}
		s := request(staged(), text)
		s.Chunk = pipeline.Chunk{Index: 1, Start: start, End: len(text), Heading: heading}
		s.Replies = map[string]string{"score": reply}
		for stage := range s.Definition.Stages {
			s.Stage = stage + 1
			questions, _, err := New().Questions(s)
			if err != nil || len(questions) != 1 {
				t.Fatalf("got %d questions, %v", len(questions), err)
			}
			r := questions[0].Request
			if want := "[" + heading + "] " + text[:start] + "|" + text[start:]; r.Shared != want {
				t.Fatalf("got %q, want %q", r.Shared, want)
			}
			if want := "score=" + reply + ";"; s.Stage == 3 && r.Prompt != want {
				t.Fatalf("got %q, want %q", r.Prompt, want)
			}
			other := r
			other.Shared, other.Prompt = r.Shared+r.Prompt, ""
			if r.Prompt != "" && pipeline.KeyOf("t", "m", 0, r) == pipeline.KeyOf("t", "m", 0, other) {
				t.Fatal("two requests have one key")
			}
		}
	})
}
