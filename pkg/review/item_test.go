package review

import (
	"testing"

	"holdfast/pkg/pipeline"
)

func itemRequest(d pipeline.Definition) pipeline.StageRequest {
	return pipeline.StageRequest{
		Definition: d, Job: pipeline.Job{ID: "j", Name: "items.txt"}, Text: "one\n\n two \n\n",
		Chunk: pipeline.Chunk{Index: 1, Context: 5, Start: 5, End: 12}, Stage: 1,
	}
}

func keyOf(t *testing.T, d pipeline.Definition) pipeline.ReplyKey {
	t.Helper()
	questions, gated, err := New().Questions(itemRequest(d))
	if err != nil || len(questions) != 1 || len(gated) != 0 {
		t.Fatalf("got %d questions, %v", len(questions), err)
	}
	return pipeline.KeyOf("t", d.Handler, 0, questions[0].Request)
}

func TestItems(t *testing.T) {
	d := pipeline.LinesOf(pipeline.ExecHandler)
	d.Command, d.Dir, d.TryCost, d.TryTimeout = []string{"wc", "{}"}, "/tmp", 7, 9
	t.Run("an item is its line, and what the definition says of it", func(t *testing.T) {
		questions, _, err := New().Questions(itemRequest(d))
		if err != nil {
			t.Fatal(err)
		}
		q := questions[0]
		if i := q.Request.Item; i.Text != " two " || i.Number != 1 || i.Name != "items.txt" || i.TryCost != 7 || i.Dir != "/tmp" || len(i.Command) != 2 || q.Request.Timeout != 9 {
			t.Errorf("got %+v, %v", *i, q.Request.Timeout)
		}
	})
	t.Run("the key is that of what can change the answer", func(t *testing.T) {
		base := keyOf(t, d)
		for name, edit := range map[string]func(*pipeline.Definition){
			"command": func(d *pipeline.Definition) { d.Command = []string{"wc", "-c", "{}"} },
			"folder":  func(d *pipeline.Definition) { d.Dir = "/" },
			"handler": func(d *pipeline.Definition) { d.Handler, d.Command = "other@1", nil },
		} {
			other := d
			edit(&other)
			if keyOf(t, other) == base {
				t.Errorf("another %s has the same key", name)
			}
		}
		same := d
		same.TryCost, same.TryTimeout = 1, 1
		if keyOf(t, same) != base {
			t.Error("another price or time has another key: what is stored would be paid for again")
		}
	})
	t.Run("without lines it is the chunk", func(t *testing.T) {
		whole := d
		whole.Chunking = pipeline.Chunking{Target: 100, Max: 200, MaxChunks: 9}
		questions, _, err := New().Questions(itemRequest(whole))
		if err != nil || questions[0].Request.Item.Text != " two \n\n" {
			t.Errorf("got %+v, %v", questions[0].Request.Item, err)
		}
	})
	t.Run("any answer will do, and says nothing that the engine reads", func(t *testing.T) {
		for _, text := range []string{"", " \n", "not JSON", `{"score": 1}`} {
			clean, repaired, err := New().Check(d, pipeline.Call{}, text)
			if clean != text || repaired || err != nil {
				t.Errorf("%q: got %q, %v, %v", text, clean, repaired, err)
			}
		}
		value, findings, err := New().Read(itemRequest(d), d.Stages[0].Calls[0], pipeline.Reply{Text: "x"})
		if value != nil || len(findings) > 0 || err != nil {
			t.Errorf("got %v, %v, %v", value, findings, err)
		}
	})
}
