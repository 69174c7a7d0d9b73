package offline

import (
	"slices"
	"strings"
)

// Sentence is a sentence of a text as the classifier sees it: what stands in it and what stands before it.
type Sentence struct {
	Start, End int // bytes of the text that was given
	Features   []Feature
	Checks     []string // whose rules match it, whatever the classifier says
	Certain    []string // whose rules match it and are too sure to be denied
	Lacks      []int    // kinds of Clauses that it has no word of
}

// Feature is a word, a pair of words, or a word of the heading or of what stands before, by its hash, and where in the sentence it is.
type Feature struct {
	ID    uint32 // below 1 << FeatureBits
	Start int32  // bytes from the sentence's beginning; -1 if it stands before the sentence
	End   int32
}

// FeatureBits is how many bits of a feature's hash count.
const FeatureBits = 16

// mostFeatures bounds the work on a sentence that never ends.
const mostFeatures = 1500

// Sentences takes a text apart as the model does before it judges it; the training sees what the model will see.
func Sentences(document string) []Sentence {
	t := texts.of(document, nil)
	all := make([]Sentence, len(t.sentences))
	for i, s := range t.sentences {
		all[i] = Sentence{Start: t.at[s.start], End: t.at[s.end-1] + 1, Features: t.features(i)}
		for k := range clauses {
			if t.lacks(i, k) {
				all[i].Lacks = append(all[i].Lacks, k)
			}
		}
	}
	for check, rules := range ruleIndex {
		for _, r := range rules {
			for _, h := range t.matches(r) {
				i, _ := slices.BinarySearchFunc(t.sentences, h.sentence.start, func(s span, at int) int { return s.start - at })
				list := &all[i].Checks
				if h.certain() {
					list = &all[i].Certain
				}
				if !slices.Contains(*list, check) {
					*list = append(*list, check)
				}
			}
		}
	}
	return all
}

// words before a sentence that count: the heading above it, or how the sentence before it ends.
const wordsBefore = 10

// features of a sentence, each once.
func (t *text) features(i int) []Feature {
	s := t.sentences[i]
	b := bag{seen: map[uint32]bool{}}
	last, before := token{}, token{}
	n := 0
	for tok := range tokens(t.plain[s.start:s.end]) {
		if n++; len(b.list) > mostFeatures {
			break
		}
		b.add('w', tok, tok)
		if n <= 4 {
			b.add('b', tok, tok)
		}
		if last.hash != 0 {
			b.add('p', last, tok)
		}
		if before.hash != 0 {
			b.add('s', before, tok)
		}
		before, last = last, tok
	}
	for tok := range tokens(t.plain[t.titles[i].start:t.titles[i].end]) {
		tok.start, tok.end = -1, -1
		b.add('t', tok, tok)
	}
	from := 0
	if i > 0 {
		from = t.sentences[i-1].start
	}
	from = max(from, s.start-200)
	all := make([]token, 0, 40)
	for tok := range tokens(t.plain[from:s.start]) {
		all = append(all, tok)
	}
	for _, tok := range all[max(0, len(all)-wordsBefore):] {
		tok.start, tok.end = -1, -1
		b.add('h', tok, tok)
	}
	return b.list
}

type bag struct {
	list []Feature
	seen map[uint32]bool
}

func (b *bag) add(kind byte, from, to token) {
	h := mix(uint32(kind)*0x9e3779b1 ^ from.hash)
	if from != to {
		h = mix(h ^ to.hash*0x85ebca6b)
	}
	id := h >> (32 - FeatureBits)
	if !b.seen[id] {
		b.seen[id] = true
		b.list = append(b.list, Feature{id, from.start, to.end})
	}
}

func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

type token struct {
	hash       uint32
	start, end int32
}

// tokens are the words in lower case, and one token for each number by its length; everything else parts them.
func tokens(s string) func(func(token) bool) {
	return func(yield func(token) bool) {
		for i := 0; i < len(s); {
			c := s[i]
			start := i
			h := uint32(2166136261)
			switch {
			case isLetter(c):
				for i < len(s) && (isLetter(s[i]) || s[i] == '\'' && i+1 < len(s) && isLetter(s[i+1])) {
					h = (h ^ uint32(s[i]|0x20)) * 16777619
					i++
				}
			case isDigit(c):
				for i < len(s) && (isDigit(s[i]) || (s[i] == ',' || s[i] == '.') && i+1 < len(s) && isDigit(s[i+1])) {
					i++
				}
				h = (h ^ uint32('0'+min(i-start, 6))) * 16777619
			case strings.IndexByte(`$%"`, c) >= 0:
				h = (h ^ uint32(c)) * 16777619
				i++
			default:
				i++
				continue
			}
			if !yield(token{h, int32(start), int32(i)}) {
				return
			}
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
