package main

import (
	"fmt"
	"math"
	"slices"

	"holdfast/pkg/offline"
	"holdfast/scripts/cuad"
)

// limits are how likely a sentence must be of a kind: to be found without a rule, and to keep a rule's hit.
type limits struct {
	find, keep []float32
	lines      []string
}

var (
	finds = []float32{never, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.025, 0.02, 0.015}
	keeps = []float32{0, 0.002, 0.004, 0.008, 0.015, 0.03, 0.05, 0.08, 0.12}
)

const never = 2 // more than likely

// training is what limits are chosen by.
type training struct {
	contracts []cuad.Contract
	samples   []sample
	likely    [][]float32 // of each sample, by what was learned without its part
}

// recallWeights are the weights of recall that are tried: how much more a clause that is missed costs than a passage that
// is read in vain. The first stands unless another is worth it. Beyond 6 a contract more, or none, costs a third more passages.
var recallWeights = []float64{3, 2, 4, 5, 6}

const (
	worthwhile = 0.2 // standard errors by which another weight must raise the smaller lead to be taken
	enough     = 4.0 // a lead of so many is as good as sure on a hundred other contracts, where it is about half of that
)

// choose takes, category by category, the weight of recall that makes the smaller of the two leads over the baseline
// great: where precision has room, recall gets it.
func choose(t training) (limits, error) {
	all := offline.Clauses()
	l := limits{find: make([]float32, len(all)), keep: make([]float32, len(all))}
	groups, err := groupsOf(t.samples, t.contracts)
	if err != nil {
		return limits{}, err
	}
	for _, g := range groups {
		views := make([]view, len(g.checks))
		for i, check := range g.checks {
			views[i] = newView(t.samples, t.likely, check)
		}
		best := math.Inf(-1)
		var chosen limits
		var line string
		for _, weight := range recallWeights {
			tried := l.clone()
			for _, v := range views {
				tried.choose(v, weight)
			}
			ours := g.outcome(t.contracts, views, tried)
			recall, precision := lead(ours, g.baseline)
			if smaller := min(recall, precision, enough); smaller > best+worthwhile {
				best, chosen = smaller, tried
				line = fmt.Sprintf("%-43s %v, baseline %v; recall weighs %v and leads by %.1f standard errors, precision by %.1f",
					g.name, ours.tally(), g.baseline.tally(), weight, recall, precision)
			}
		}
		l = chosen
		l.lines = append(l.lines, line)
		for i, check := range g.checks {
			v := views[i]
			l.lines = append(l.lines, fmt.Sprintf("  %-41s rules alone %v, with the classifier %v; find %v keep %v", check, v.count(rulesAlone(len(all))), v.count(l), at(l.find, v.kinds), l.keep[v.kinds[0]]))
		}
	}
	return l, nil
}

func (l limits) clone() limits {
	return limits{slices.Clone(l.find), slices.Clone(l.keep), l.lines}
}

// choose takes what makes recall of documents and precision of passages best together, check by check: for each kind how
// likely a sentence must be to be found, with the rules at work beside it, and then what keeps a rule's hit.
func (l limits) choose(v view, weight float64) {
	for _, k := range v.kinds {
		l.find[k] = never
	}
	for range rounds {
		for _, k := range v.kinds {
			l.find[k] = best(finds, weight, func(find float32) tally { l.find[k] = find; return v.count(l) })
		}
		keep := best(keeps, weight, func(keep float32) tally { l.setKeep(v.kinds, keep); return v.count(l) })
		l.setKeep(v.kinds, keep)
	}
}

// rounds of choosing one limit after the other; they settle.
const rounds = 2

func (l limits) setKeep(kinds []int, keep float32) {
	for _, k := range kinds {
		l.keep[k] = keep
	}
}

func rulesAlone(kinds int) limits {
	l := limits{find: make([]float32, kinds), keep: make([]float32, kinds)}
	for k := range l.find {
		l.find[k] = never
	}
	return l
}

// best is the candidate whose tally is best, the first of equals.
func best(candidates []float32, weight float64, try func(float32) tally) float32 {
	most, chosen := -1.0, candidates[0]
	for _, c := range candidates {
		if b := try(c).both(weight); b > most {
			most, chosen = b, c
		}
	}
	return chosen
}

// checks are those that ask about kinds, in their order.
func checks() []string {
	var all []string
	for _, c := range offline.Clauses() {
		if !slices.Contains(all, c.Check) {
			all = append(all, c.Check)
		}
	}
	return all
}

// view is what choosing for one check needs of the samples.
type view struct {
	kinds     []int
	documents int // with a clause of the kinds
	points    []point
}

// point is a sentence that a rule matches, or that may be of the check's kinds.
type point struct {
	contract       int
	here           cuad.Span
	likely         []float32 // by kind
	ruled, certain bool
	is, touches    bool // of one of the kinds
}

func newView(samples []sample, likely [][]float32, check string) view {
	v := view{kinds: kindsOf(check)}
	have := map[int]bool{}
	for i := range samples {
		p := pointOf(&samples[i], likely[i], check, v.kinds)
		if p.is {
			have[p.contract] = true
		}
		if p.ruled || p.certain || slices.Max(p.likely) >= slices.Min(finds) {
			v.points = append(v.points, p)
		}
	}
	v.documents = len(have)
	return v
}

func pointOf(s *sample, likely []float32, check string, kinds []int) point {
	p := point{contract: s.contract, here: s.here, ruled: slices.Contains(s.ruled, check), certain: slices.Contains(s.certain, check)}
	p.is, p.touches = slices.ContainsFunc(kinds, s.is), slices.ContainsFunc(kinds, s.touches)
	for _, k := range kinds {
		p.likely = append(p.likely, likely[k])
	}
	return p
}

// kindsOf are the kinds that a check asks about, as indexes of offline.Clauses.
func kindsOf(check string) []int {
	var kinds []int
	for k, c := range offline.Clauses() {
		if c.Check == check {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// found says that the model would report the sentence.
func (p point) found(l limits, kinds []int) bool {
	kept := p.certain
	for i, k := range kinds {
		if p.likely[i] >= l.find[k] {
			return true
		}
		kept = kept || p.ruled && p.likely[i] >= l.keep[k]
	}
	return kept
}

func (v view) count(l limits) tally {
	t := tally{documents: v.documents}
	hit := map[int]bool{}
	for _, p := range v.points {
		if !p.found(l, v.kinds) {
			continue
		}
		t.passages++
		if p.touches {
			t.right++
		}
		if p.is {
			hit[p.contract] = true
		}
	}
	t.found = len(hit)
	return t
}

func at(list []float32, kinds []int) []float32 {
	var some []float32
	for _, k := range kinds {
		some = append(some, list[k])
	}
	return some
}

// tally counts what was found in the training part.
type tally struct{ documents, found, passages, right int }

func (t tally) recall() float64    { return float64(t.found) / float64(max(1, t.documents)) }
func (t tally) precision() float64 { return float64(t.right) / float64(max(1, t.passages)) }

// both is high only if recall and precision are: their F-measure, with recall weighing so much.
func (t tally) both(weight float64) float64 {
	if t.found == 0 {
		return 0
	}
	b := weight * weight
	return (1 + b) * t.recall() * t.precision() / (t.recall() + b*t.precision())
}

func (t tally) String() string { return fmt.Sprintf("R %.2f P %.2f", t.recall(), t.precision()) }
