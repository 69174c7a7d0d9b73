package main

import (
	"math"
	"slices"
	"testing"

	"holdfast/pkg/offline"
	"holdfast/scripts/cuad"
)

// toys are sentences of which those with feature 7 are of kind 0, and half of the others touch it.
func toys() []sample {
	var all []sample
	for i := range 400 {
		s := sample{contract: i % 20, features: []uint32{uint32(100 + i%13), uint32(200 + i%7)}}
		switch {
		case i%10 == 0:
			s.features, s.yes = append(s.features, 7), []int{0}
		case i%10 == 1:
			s.maybe = []int{0}
		}
		all = append(all, s)
	}
	return all
}

func TestLearn(t *testing.T) {
	first, again := learn(toys(), 2), learn(toys(), 2)
	t.Run("the same samples give the same weights", func(t *testing.T) {
		for k := range first {
			if !slices.Equal(first[k].weights, again[k].weights) || first[k].bias != again[k].bias {
				t.Errorf("kind %d differs", k)
			}
		}
	})
	t.Run("what tells a kind gets the weight", func(t *testing.T) {
		with, without := first[0].margin([]uint32{7, 101, 202}), first[0].margin([]uint32{101, 202})
		if with-without < 2 || without > 0 {
			t.Errorf("got margins %v with the word and %v without", with, without)
		}
	})
}

func TestBestTakesTheFirstOfEquals(t *testing.T) {
	tallies := map[float32]tally{
		1: {documents: 10, found: 5, passages: 10, right: 5},
		2: {documents: 10, found: 9, passages: 10, right: 5},
		3: {documents: 10, found: 9, passages: 10, right: 5},
	}
	if got := best([]float32{1, 2, 3}, 3, func(c float32) tally { return tallies[c] }); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
}

func TestLead(t *testing.T) {
	at := func(passages, right int, hits ...int) outcome {
		o := newOutcome()
		o.passages, o.right = passages, right
		for contract := range 10 {
			o.have[contract] = true
		}
		for _, contract := range hits {
			o.hit[contract] = true
		}
		return o
	}
	t.Run("recall leads by the contracts that only one of the two found", func(t *testing.T) {
		recall, _ := lead(at(10, 5, 0, 1, 2, 3, 4), at(10, 5, 0, 5))
		if want := (4 - 1) / math.Sqrt(5); math.Abs(recall-want) > 1e-9 {
			t.Errorf("got %v, want %v", recall, want)
		}
	})
	t.Run("precision leads by less where fewer passages speak for it", func(t *testing.T) {
		_, few := lead(at(10, 6), at(10, 3))
		_, many := lead(at(1000, 600), at(1000, 300))
		if few <= 0 || many <= few {
			t.Errorf("got %v of few passages and %v of many", few, many)
		}
	})
	t.Run("no passages at all are no lead", func(t *testing.T) {
		if recall, precision := lead(newOutcome(), newOutcome()); recall != 0 || precision != 0 {
			t.Errorf("got %v and %v, want 0", recall, precision)
		}
	})
}

func TestLimitsThatRecallMayHave(t *testing.T) {
	const check = "disputes-drafting.governing-law"
	k := kindsOf(check)[0]
	l := rulesAlone(len(offline.Clauses()))
	v := view{kinds: []int{k}, documents: 20}
	for contract := range 20 {
		v.points = append(v.points, point{contract: contract, likely: []float32{0.5}, is: true, touches: true})
		if contract >= 17 {
			v.points[contract].likely[0] = 0.05 // three clauses are found only with a lot of others
		}
	}
	for range 40 {
		v.points = append(v.points, point{contract: 99, likely: []float32{0.05}})
	}
	t.Run("a light weight leaves the last clauses to save the reading", func(t *testing.T) {
		if l.choose(v, 1); l.find[k] != 0.5 || v.count(l).found != 17 {
			t.Errorf("got limit %v and %d found, want 0.5 and 17", l.find[k], v.count(l).found)
		}
	})
	t.Run("a heavy one finds them", func(t *testing.T) {
		if l.choose(v, 6); l.find[k] != 0.05 || v.count(l).found != 20 {
			t.Errorf("got limit %v and %d found, want 0.05 and 20", l.find[k], v.count(l).found)
		}
	})
}

func TestOutcomeCountsAsTheEvaluationDoes(t *testing.T) {
	k := kindsOf("disputes-drafting.governing-law")[0]
	contracts := []cuad.Contract{
		{Clauses: map[string][]cuad.Span{offline.Clauses()[k].Kind: {{Start: 100, End: 200}}}},
		{Clauses: map[string][]cuad.Span{offline.Clauses()[k].Kind: {{Start: 0, End: 50}}}},
	}
	var samples []sample
	var likely [][]float32
	add := func(contract int, here cuad.Span, chance float32) {
		samples, likely = append(samples, sample{contract: contract, here: here}), append(likely, make([]float32, len(offline.Clauses())))
		likely[len(likely)-1][k] = chance
	}
	add(0, cuad.Span{Start: 0, End: 110}, 0.9)   // shares too little with the clause
	add(0, cuad.Span{Start: 110, End: 150}, 0.9) // right
	add(1, cuad.Span{Start: 0, End: 50}, 0.1)    // right, and too unlikely to be found
	l := rulesAlone(len(offline.Clauses()))
	l.find[k] = 0.5
	g := group{checks: []string{"disputes-drafting.governing-law"}, contracts: contractsOf(samples)}
	got := g.outcome(contracts, []view{newView(samples, likely, g.checks[0])}, l).tally()
	if want := (tally{documents: 2, found: 1, passages: 2, right: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFound(t *testing.T) {
	l := limits{find: []float32{0.5}, keep: []float32{0.1}}
	for _, c := range []struct {
		name  string
		point point
		want  bool
	}{
		{"likely enough by itself", point{likely: []float32{0.5}}, true},
		{"a rule's hit that is likely enough", point{likely: []float32{0.1}, ruled: true}, true},
		{"a rule's hit that is denied", point{likely: []float32{0.05}, ruled: true}, false},
		{"a certain rule's hit", point{likely: []float32{0}, certain: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.point.found(l, []int{0}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestTouch(t *testing.T) {
	marked := []cuad.Span{{Start: 100, End: 200}}
	for here, want := range map[cuad.Span]degree{
		{Start: 0, End: 100}: not, {Start: 0, End: 120}: somewhat, {Start: 120, End: 140}: mostly, {Start: 50, End: 400}: mostly,
	} {
		if got := touch(here, marked); got != want {
			t.Errorf("%v: got %v, want %v", here, got, want)
		}
	}
	if offline.FeatureBits > 17 {
		t.Errorf("the weights are of 1 << %d features", offline.FeatureBits)
	}
}
