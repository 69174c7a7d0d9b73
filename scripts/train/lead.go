package main

import (
	"fmt"
	"math"
	"slices"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipelines"
	"holdfast/scripts/baseline"
	"holdfast/scripts/cuad"
)

// group is the checks of one category of the review, and what the baseline makes of their kinds.
type group struct {
	name      string
	checks    []string
	contracts []int // that the samples are of
	baseline  outcome
}

// outcome is what was found of a group's kinds, counted as the evaluation counts.
type outcome struct {
	have, hit       map[int]bool // contracts with a marked clause; of these, with a right passage
	passages, right int
}

func (o *outcome) add(contract int, marked, found []cuad.Span) {
	if len(marked) > 0 {
		o.have[contract] = true
	}
	for _, f := range cuad.Distinct(found) {
		o.passages++
		if slices.ContainsFunc(marked, f.Meets) {
			o.right++
			o.hit[contract] = true
		}
	}
}

// tally is the outcome in numbers.
func (o outcome) tally() tally {
	return tally{documents: len(o.have), found: len(o.hit), passages: o.passages, right: o.right}
}

// groupsOf are the categories that have labels, each with the baseline's outcome in the contracts that the samples are of.
func groupsOf(samples []sample, contracts []cuad.Contract) ([]group, error) {
	d, err := pipelines.Load("contract-review", "full")
	if err != nil {
		return nil, fmt.Errorf("load the pipeline: %w", err)
	}
	var all []group
	for _, check := range checks() {
		call, _, _ := d.Find("check." + check)
		i := slices.IndexFunc(all, func(g group) bool { return g.name == call.Category })
		if i < 0 {
			all = append(all, group{name: call.Category})
			i = len(all) - 1
		}
		all[i].checks = append(all[i].checks, check)
	}
	here := contractsOf(samples)
	for i := range all {
		all[i].baseline, all[i].contracts = newOutcome(), here
	}
	for _, contract := range here {
		found := baseline.Passages(contracts[contract].Text)
		for i, g := range all {
			var passages []cuad.Span
			for _, k := range g.kinds() {
				passages = append(passages, found[offline.Clauses()[k].Kind]...)
			}
			all[i].baseline.add(contract, g.marked(contracts[contract]), passages)
		}
	}
	return all, nil
}

// contractsOf are the contracts of samples, which stand together.
func contractsOf(samples []sample) []int {
	var all []int
	for _, s := range samples {
		if n := len(all); n == 0 || all[n-1] != s.contract {
			all = append(all, s.contract)
		}
	}
	return all
}

func newOutcome() outcome { return outcome{have: map[int]bool{}, hit: map[int]bool{}} }

func (g group) kinds() []int {
	var all []int
	for _, check := range g.checks {
		all = append(all, kindsOf(check)...)
	}
	return all
}

func (g group) marked(c cuad.Contract) []cuad.Span {
	var all []cuad.Span
	for _, k := range g.kinds() {
		all = append(all, c.Clauses[offline.Clauses()[k].Kind]...)
	}
	return all
}

// outcome is what the limits make of the group's kinds, in the contracts that the baseline was applied to.
func (g group) outcome(contracts []cuad.Contract, views []view, l limits) outcome {
	found := map[int][]cuad.Span{}
	for _, v := range views {
		for _, p := range v.points {
			if p.found(l, v.kinds) {
				found[p.contract] = append(found[p.contract], p.here)
			}
		}
	}
	o := newOutcome()
	for _, contract := range g.contracts {
		o.add(contract, g.marked(contracts[contract]), found[contract])
	}
	return o
}

// lead is by how many standard errors recall, and precision, exceed the baseline's. Both looked at the same contracts,
// so of recall only those count that one found and the other did not.
func lead(ours, base outcome) (recall, precision float64) {
	gained, lost := 0, 0
	for contract := range ours.have {
		switch {
		case ours.hit[contract] && !base.hit[contract]:
			gained++
		case !ours.hit[contract] && base.hit[contract]:
			lost++
		}
	}
	recall = float64(gained-lost) / math.Sqrt(float64(max(1, gained+lost)))
	a, b := ours.tally(), base.tally()
	return recall, (a.precision() - b.precision()) / math.Hypot(a.doubt(), b.doubt())
}

// doubt is the standard error of the precision; one that nothing speaks for or against is not taken for sure.
func (t tally) doubt() float64 {
	p := (float64(t.right) + 1) / (float64(t.passages) + 2)
	return math.Sqrt(p * (1 - p) / float64(t.passages+2))
}
