package main

import (
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
	"holdfast/scripts/baseline"
	"holdfast/scripts/cuad"
)

func TestTallyOf(t *testing.T) {
	marked := []cuad.Span{{Start: 100, End: 200}}
	for _, c := range []struct {
		name  string
		found []cuad.Span
		want  tally
	}{
		{"nothing found is a miss and an absence", nil, tally{labelled: 1, absent: 1}},
		{"a passage over the clause is right", []cuad.Span{{Start: 150, End: 400}}, tally{labelled: 1, found: 1, passages: 1, right: 1}},
		{"a passage that touches its edge is not", []cuad.Span{{Start: 190, End: 400}}, tally{labelled: 1, passages: 1}},
		{"a short passage inside it is", []cuad.Span{{Start: 190, End: 198}}, tally{labelled: 1, found: 1, passages: 1, right: 1}},
		{"two findings about one passage count once", []cuad.Span{{Start: 150, End: 400}, {Start: 110, End: 160}, {Start: 500, End: 600}}, tally{labelled: 1, found: 1, passages: 2, right: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tallyOf(marked, c.found); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestEveryKindHasABaseline(t *testing.T) {
	d, err := pipelines.Load("contract-review", "full")
	if err != nil {
		t.Fatal(err)
	}
	categories, checks := rowsOf(d)
	if len(categories) != 10 || len(checks) < 25 {
		t.Errorf("got %d categories and %d checks", len(categories), len(checks))
	}
	for _, r := range checks {
		for _, kind := range r.kinds {
			if !baseline.Knows(kind) {
				t.Errorf("there is no baseline for %s", kind)
			}
		}
	}
}

// absences are the categories that a review calls absent.
func absences(all []pipeline.Finding) []string {
	var categories []string
	for _, f := range all {
		if f.Match == pipeline.MatchAbsence {
			categories = append(categories, f.Category)
		}
	}
	return categories
}

func TestDeletedClause(t *testing.T) {
	d, err := pipelines.Load("contract-review", "full")
	if err != nil {
		t.Fatal(err)
	}
	contract := strings.ReplaceAll(pipelines.SampleContract(), "severance", "paper") // a severance fee is of the category too
	begin, end := strings.Index(contract, "     6.5  LIMITATION OF LIABILITY."), strings.Index(contract, "7. INTELLECTUAL PROPERTY RIGHTS.")
	until := strings.Index(contract, "     7.6 ")
	if begin < 0 || end < begin || until < end {
		t.Fatalf("the sample has changed: %d, %d, %d", begin, end, until)
	}
	const category = "limitation_of_liability"
	model := offline.New(offline.Config{})
	with, err := reviewText(d, model, contract[:until])
	if err != nil {
		t.Fatal(err)
	}
	without, err := reviewText(d, model, contract[:begin]+contract[end:until])
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a contract with the clause has no absence", func(t *testing.T) {
		if got := absences(with.confirmed); slices.Contains(got, category) {
			t.Errorf("got absences %v", got)
		}
	})
	t.Run("without it there is one, for the whole document", func(t *testing.T) {
		n := 0
		for _, f := range without.confirmed {
			switch {
			case f.Category == category && f.Match == pipeline.MatchAbsence:
				n++
			case f.Category == category:
				t.Errorf("a finding stands in the way: %q, %q", f.Title, f.Quote)
			}
		}
		if n != 1 {
			t.Errorf("got %d absences, want 1", n)
		}
	})
	t.Run("but none while a part's question has no answer", func(t *testing.T) {
		for i, body := range without.bodies {
			for j, cell := range body.Cells {
				if body.Chunk == 1 && cell.Call == "score."+category {
					without.bodies[i].Cells[j] = pipeline.Cell{Chunk: 1, Call: cell.Call, State: pipeline.CellFailed}
				}
			}
		}
		if got := absences(without.merge(d)); slices.Contains(got, category) {
			t.Errorf("got absences %v", got)
		}
	})
}
