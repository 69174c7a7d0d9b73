package main

import (
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
	if got := best([]float32{1, 2, 3}, func(c float32) tally { return tallies[c] }); got != 2 {
		t.Errorf("got %v, want 2", got)
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
