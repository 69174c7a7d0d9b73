package pipeline

import (
	"encoding/json"
	"strings"
	"testing"
)

func valid() Definition {
	return Definition{
		Name: "small", Version: "1",
		Schemas: map[string]json.RawMessage{"s": json.RawMessage("{}")}, Prompts: map[string]string{"p": "ask"},
		Stages: []Stage{
			{Name: "score", Calls: []Call{{ID: "a", Prompt: "p", Schema: "s", MaxTokens: 1}}},
			{Name: "check", Calls: []Call{{ID: "b", Prompt: "p", Schema: "s", MaxTokens: 1, Category: "c", Analyst: "n", Uses: []string{"a"}, Replaces: []string{"a"}, Gate: &Gate{Call: "a", Min: 0.5}}}},
		},
		Categories: []Category{{ID: "c", Presence: "a", Absence: &Absence{Severity: High}}},
		Analysts:   []Analyst{{ID: "n"}},
		Chunking:   Chunking{Target: 10, Max: 10, Overlap: 9, MaxChunks: 1},
		Tolerance:  1,
	}
}

func TestDefinitionValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(d *Definition){
		"name: \"\"":        func(d *Definition) { d.Name = "" },
		"name: \"a/b\"":     func(d *Definition) { d.Name = "a/b" },
		"version":           func(d *Definition) { d.Version = "" },
		"target (0)":        func(d *Definition) { d.Chunking = Chunking{Target: 0, Max: 1, MaxChunks: 1} },
		"max (9)":           func(d *Definition) { d.Chunking.Max = 9 },
		"overlap (10)":      func(d *Definition) { d.Chunking.Overlap = 10 },
		"overlap (-1)":      func(d *Definition) { d.Chunking.Overlap = -1 },
		"max_chunks (0)":    func(d *Definition) { d.Chunking.MaxChunks = 0 },
		"max_chunks (1000":  func(d *Definition) { d.Chunking.MaxChunks = 100_000 },
		"tolerance: -0.1":   func(d *Definition) { d.Tolerance = -0.1 },
		"tolerance: 1.1":    func(d *Definition) { d.Tolerance = 1.1 },
		"at least one call": func(d *Definition) { d.Stages, d.Categories = nil, nil },
		"stages[0]":         func(d *Definition) { d.Stages[0].Name = "" },
		"stages[1]":         func(d *Definition) { d.Stages[1].Calls = nil },
		"call : ids":        func(d *Definition) { d.Stages[1].Calls[0].ID = "" },
		"call a: ids":       func(d *Definition) { d.Stages[1].Calls[0].ID = "a" },
		"no prompt \"x\"":   func(d *Definition) { d.Stages[0].Calls[0].Prompt = "x" },
		"no schema \"x\"":   func(d *Definition) { d.Stages[0].Calls[0].Schema = "x" },
		"max_tokens (0)":    func(d *Definition) { d.Stages[0].Calls[0].MaxTokens = 0 },
		"no category \"x\"": func(d *Definition) { d.Stages[1].Calls[0].Category = "x" },
		"no analyst \"x\"":  func(d *Definition) { d.Stages[1].Calls[0].Analyst = "x" },
		"call b: \"b\"":     func(d *Definition) { d.Stages[1].Calls[0].Uses = []string{"b"} },
		"call b: \"later\"": func(d *Definition) { d.Stages[1].Calls[0].Replaces = []string{"later"} },
		"call b: \"gone\"":  func(d *Definition) { d.Stages[1].Calls[0].Gate.Call = "gone" },
		"presence":          func(d *Definition) { d.Categories[0].Presence = "x" },
		"is no severity":    func(d *Definition) { d.Categories[0].Absence.Severity = "grave" },
	} {
		t.Run(name, func(t *testing.T) {
			d := valid()
			edit(&d)
			if err := d.Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %q in it", err, name)
			}
		})
	}
	t.Run("a call of the same stage is not earlier", func(t *testing.T) {
		d := valid()
		second := d.Stages[0].Calls[0]
		second.ID, second.Uses = "a2", []string{"a"}
		d.Stages[0].Calls = append(d.Stages[0].Calls, second)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), "call a2: \"a\"") {
			t.Errorf("got %v, want an error", err)
		}
	})
}

func TestDefinition(t *testing.T) {
	d := valid()
	same, err := DecodeDefinition(d.Encode())
	if err != nil || same.Key() != d.Key() {
		t.Errorf("got key %s, error %v; want %s", same.Key(), err, d.Key())
	}
	changed := valid()
	changed.Prompts["p"] = "ask otherwise"
	if changed.Key() == d.Key() {
		t.Error("another prompt has the same key")
	}
	if call, stage, ok := d.Find("b"); !ok || stage != 2 || call.ID != "b" {
		t.Errorf("got %s of stage %d, %v; want b of 2", call.ID, stage, ok)
	}
	if _, _, ok := d.Find("x"); ok {
		t.Error("a call that is not there was found")
	}
	if d.Calls() != 2 || d.ID() != "small@1" {
		t.Errorf("got %d calls of %s, want 2 of small@1", d.Calls(), d.ID())
	}
}
