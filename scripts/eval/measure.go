package main

import (
	"slices"
	"strings"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/scripts/baseline"
	"holdfast/scripts/cuad"
)

// row is what is compared: a category of the review, or one check of it, and the kinds of clauses that belong to it.
type row struct {
	name   string
	kinds  []string
	checks []string
}

// rowsOf are the categories that have labels, and the checks that ask about labelled kinds.
func rowsOf(d pipeline.Definition) (categories, checks []row) {
	for _, clause := range offline.Clauses() {
		call, _, _ := d.Find("check." + clause.Check)
		categories = join(categories, call.Category, clause)
		checks = join(checks, clause.Check, clause)
	}
	return categories, checks
}

func join(rows []row, name string, c offline.Clause) []row {
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		rows = append(rows, row{name: name})
		i = len(rows) - 1
	}
	rows[i].kinds = append(rows[i].kinds, c.Kind)
	if call := "check." + c.Check; !slices.Contains(rows[i].checks, call) {
		rows[i].checks = append(rows[i].checks, call)
	}
	return rows
}

// tally is what was found for one row, in one contract or in all.
type tally struct {
	labelled   int // contracts with a marked clause
	found      int // of these, with a passage that overlaps one
	passages   int
	right      int // passages that overlap a marked clause
	absent     int // contracts with a marked clause of which it was said that there is none
	findings   int
	ungrounded int
}

func (t tally) plus(o tally) tally {
	return tally{
		t.labelled + o.labelled, t.found + o.found, t.passages + o.passages, t.right + o.right, t.absent + o.absent,
		t.findings + o.findings, t.ungrounded + o.ungrounded,
	}
}

func (t tally) recall() float64    { return share(t.found, t.labelled) }
func (t tally) precision() float64 { return share(t.right, t.passages) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// sheet is one contract, measured: by category and by check, ours and the baseline's.
type sheet struct {
	categories, checks []row
	ours, base         map[string]tally
	calls              int
}

func measure(d pipeline.Definition, by turn) (sheet, error) {
	s := sheet{ours: map[string]tally{}, base: map[string]tally{}}
	s.categories, s.checks = rowsOf(d)
	c := by.contract
	plain := baseline.Passages(c.Text)
	r, err := reviewText(d, by.model, c.Text)
	if err != nil {
		return sheet{}, err
	}
	for _, body := range r.bodies {
		s.calls += len(body.Cells)
	}
	for _, row := range slices.Concat(s.categories, s.checks) {
		marked := row.marked(c)
		var base []cuad.Span
		for _, kind := range row.kinds {
			base = append(base, plain[kind]...)
		}
		s.base[row.name] = tallyOf(marked, base)
		ours := tallyOf(marked, row.passages(r))
		ours.absent = 0
		if lacking(d, row.name, r) {
			ours.absent = ours.labelled
		}
		for _, f := range r.confirmed {
			if f.Category == row.name && f.Match != pipeline.MatchAbsence {
				ours.findings++
				if !f.Grounded() {
					ours.ungrounded++
				}
			}
		}
		s.ours[row.name] = ours
	}
	return s, nil
}

func (r row) marked(c cuad.Contract) []cuad.Span {
	var all []cuad.Span
	for _, kind := range r.kinds {
		all = append(all, c.Clauses[kind]...)
	}
	return all
}

// passages are the places of the findings of the row's checks that still stand at the end: a finding that was
// confirmed is about the same category and place.
func (r row) passages(done reviewed) []cuad.Span {
	var all []cuad.Span
	for _, body := range done.bodies {
		for _, f := range body.Findings {
			if !slices.Contains(r.checks, f.Call) || !f.Grounded() {
				continue
			}
			if slices.ContainsFunc(done.confirmed, func(k pipeline.Finding) bool {
				return k.Grounded() && k.Category == f.Category && k.Start < f.End && f.Start < k.End
			}) {
				all = append(all, cuad.Span{Start: f.Start, End: f.End})
			}
		}
	}
	return all
}

func tallyOf(marked, found []cuad.Span) tally {
	var t tally
	if len(marked) > 0 {
		t.labelled = 1
	}
	for _, f := range cuad.Distinct(found) {
		t.passages++
		if slices.ContainsFunc(marked, func(m cuad.Span) bool { return f.Meets(m) }) {
			t.right++
			t.found = 1
		}
	}
	if len(found) == 0 {
		t.absent = t.labelled
	}
	return t
}

// lacking says that the review called the category absent; where an absence is no finding, that no part scored enough
// and nothing was found.
func lacking(d pipeline.Definition, category string, r reviewed) bool {
	i := slices.IndexFunc(d.Categories, func(c pipeline.Category) bool { return c.ID == category })
	if i < 0 || strings.Contains(category, ".") {
		return false
	}
	if slices.ContainsFunc(r.confirmed, func(f pipeline.Finding) bool { return f.Category == category && f.Grounded() }) {
		return false
	}
	for _, body := range r.bodies {
		if cell, ok := body.Answered(d.Categories[i].Presence); ok && cell.Value != nil && *cell.Value >= d.Categories[i].PresenceMin {
			return false
		}
	}
	return true
}
