package main

import (
	"fmt"
	"hash/fnv"
	"slices"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipelines"
	"holdfast/pkg/split"
	"holdfast/scripts/cuad"
)

// sample is one sentence: what it holds, and which kinds of clauses it is.
type sample struct {
	contract int
	here     cuad.Span
	features []uint32
	ruled    []string // checks whose rules match it
	certain  []string // checks whose rules match it, whatever the classifier says
	lacks    []int    // kinds that it has no word of
	yes      []int    // kinds that it is
	maybe    []int    // kinds that it touches too little to say
}

func (s *sample) is(k int) bool      { return slices.Contains(s.yes, k) }
func (s *sample) touches(k int) bool { return s.is(k) || slices.Contains(s.maybe, k) }

// samplesOf cuts contracts as a job does and takes the parts apart as the model does.
func samplesOf(contracts []cuad.Contract) ([]sample, error) {
	d, err := pipelines.Load("contract-review", "")
	if err != nil {
		return nil, fmt.Errorf("load the pipeline: %w", err)
	}
	var all []sample
	for i, c := range contracts {
		chunks, err := split.Chunks(c.Text, d.Chunking)
		if err != nil {
			return nil, fmt.Errorf("cut %s: %w", c.Name, err)
		}
		for _, chunk := range chunks {
			for _, s := range offline.Sentences(c.Text[chunk.Start:chunk.End]) {
				all = append(all, sampleOf(i, c, chunk.Start, s))
			}
		}
	}
	return all, nil
}

func sampleOf(i int, c cuad.Contract, offset int, s offline.Sentence) sample {
	here := cuad.Span{Start: s.Start + offset, End: s.End + offset}
	made := sample{contract: i, here: here, ruled: s.Checks, certain: s.Certain, lacks: s.Lacks, features: make([]uint32, len(s.Features))}
	for j, f := range s.Features {
		made.features[j] = f.ID
	}
	for k, kind := range offline.Clauses() {
		switch touch(here, c.Clauses[kind.Kind]) {
		case mostly:
			made.yes = append(made.yes, k)
		case somewhat:
			made.maybe = append(made.maybe, k)
		}
	}
	return made
}

type degree int

const (
	not degree = iota
	somewhat
	mostly // half of the sentence, or half of what was marked
)

func touch(here cuad.Span, marked []cuad.Span) degree {
	most := not
	for _, m := range marked {
		common := here.Overlap(m)
		switch {
		case common == 0:
		case 2*common >= min(here.End-here.Start, m.End-m.Start):
			return mostly
		default:
			most = somewhat
		}
	}
	return most
}

const parts = 4

// partOf is the part of the cross-validation that a contract belongs to; a filer's all belong to the same.
func partOf(c cuad.Contract) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Group())) // never fails
	return int(h.Sum32()>>3) % parts
}

// crossValidate is how likely each sample is of each kind, by what was learned without its part.
func crossValidate(samples []sample, contracts []cuad.Contract) [][]float32 {
	kinds := len(offline.Clauses())
	likely := make([][]float32, len(samples))
	for part := range parts {
		var others []sample
		for _, s := range samples {
			if partOf(contracts[s.contract]) != part {
				others = append(others, s)
			}
		}
		if len(others) == len(samples) {
			continue // nothing to judge: the part was left out
		}
		found := learn(others, kinds)
		for i := range samples {
			if partOf(contracts[samples[i].contract]) != part {
				continue
			}
			likely[i] = make([]float32, kinds)
			for k := range found {
				if !slices.Contains(samples[i].lacks, k) {
					likely[i][k] = offline.Chance(found[k].margin(samples[i].features))
				}
			}
		}
	}
	return likely
}
