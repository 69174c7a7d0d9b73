package offline

import (
	"encoding/json"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
)

func scoreOf(t *testing.T, category, text string) int {
	t.Helper()
	d := definition(t, "contract-review", "full")
	call, _, ok := d.Find("score." + category)
	if !ok {
		t.Fatalf("there is no score of %s", category)
	}
	body, err := answer(pipeline.Request{
		Shared: render(t, d.Shared, pipeline.PromptData{Text: text}), Schema: d.Schemas[call.Schema], MaxTokens: call.MaxTokens,
		Prompt: render(t, d.Prompts[call.Prompt], pipeline.PromptData{Vars: call.Vars}),
	})
	var s score
	if err != nil || json.Unmarshal([]byte(body), &s) != nil {
		t.Fatalf("score of %s: %s, %v", category, body, err)
	}
	return s.Score
}

func TestClassifier(t *testing.T) {
	d := definition(t, "contract-review", "full")
	t.Run("it denies a rule's hit in a sentence that is no such clause", func(t *testing.T) {
		text := "The Committee may examine the accounts of witnesses."
		if n := len(newText(text).matches(rulesOf("insurance-compliance.audit")[0])); n != 1 {
			t.Fatalf("the rule matches %d times, want once", n)
		}
		if got := answerTo(t, d, "insurance-compliance.audit", text); len(got) > 0 {
			t.Errorf("got %q, want nothing", titlesOf(got))
		}
	})
	t.Run("it finds a clause that no rule matches, and says that nobody judged it", func(t *testing.T) {
		text := "The validity and performance of this contract shall be construed under the laws of Singapore."
		got := answerTo(t, d, "disputes-drafting.governing-law", text)
		if titlesOf(got) != "Choice of law" || got[0].Severity != pipeline.Low || got[0].Quote != text {
			t.Errorf("got %+v, want a choice of law", got)
		}
	})
	t.Run("it does not repeat what a rule found", func(t *testing.T) {
		got := answerTo(t, d, "disputes-drafting.governing-law", "This Agreement shall be governed by the laws of the State of Texas.")
		if titlesOf(got) != "Law of Texas" {
			t.Errorf("got %q, want the rule's finding alone", titlesOf(got))
		}
	})
	t.Run("a clause in unusual words makes its category present", func(t *testing.T) {
		if got := scoreOf(t, "limitation_of_liability", "Licensor is not responsible for lost profits or consequential damages, and what it owes never exceeds the fees received in the last year."); got < 40 {
			t.Errorf("got a score of %d, want at least 40", got)
		}
	})
	t.Run("a mention does not", func(t *testing.T) {
		if got := scoreOf(t, "limitation_of_liability", "The headings Payment, Limitation of Liability and Notices are for convenience only."); got >= 40 {
			t.Errorf("got a score of %d, want less than 40", got)
		}
	})
}

func TestAnotherClassifier(t *testing.T) {
	kinds := make([]Kind, len(clauses))
	for k, c := range clauses {
		kinds[k] = Kind{Name: c.kind, Bias: -9, Find: 2}
	}
	packed, err := PackClassifier(kinds, make([][]int8, len(clauses)))
	if err != nil {
		t.Fatal(err)
	}
	blind, err := ReadClassifier(packed)
	if err != nil {
		t.Fatal(err)
	}
	d := definition(t, "contract-review", "full")
	call, _, _ := d.Find("check.disputes-drafting.governing-law")
	request := pipeline.Request{
		Shared: render(t, d.Shared, pipeline.PromptData{Text: "The validity and performance of this contract shall be construed under the laws of Chad."}), Schema: d.Schemas[call.Schema],
		MaxTokens: call.MaxTokens, Prompt: render(t, d.Prompts[call.Prompt], pipeline.PromptData{Vars: call.Vars}),
	}
	found := func(c *Classifier) int {
		t.Helper()
		response, err := New(Config{Classifier: c}).Complete(t.Context(), request)
		var f findings
		if err != nil || json.Unmarshal([]byte(response.Text), &f) != nil {
			t.Fatalf("%s: %v", response.Text, err)
		}
		return len(f.Findings)
	}
	t.Run("a model is judged by the weights that it was given, whoever read the text before", func(t *testing.T) {
		if before, then, after := found(nil), found(blind), found(nil); before != 1 || then != 0 || after != 1 {
			t.Errorf("got %d findings, %d by weights that see nothing, and %d, want 1, 0 and 1", before, then, after)
		}
	})
}

func BenchmarkComplete(b *testing.B) {
	d, chunks := definition(b, "contract-review", "full"), chunksOf(pipelines.SampleContract())
	m := New(Config{})
	calls := 0
	for b.Loop() {
		texts = recent{}
		calls += len(askAll(b, m, d, chunks[calls/116%len(chunks)]))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(calls), "us/call")
}
