package review

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"holdfast/pkg/pipeline"
)

// spot is where a quote stands, in bytes of the whole text.
type spot struct {
	start, end int
	match      pipeline.Match
}

func (s spot) found() bool { return s.match != "" }

// aligner places quotes in what the model saw of a text: the core of a chunk and the context before it.
type aligner struct {
	seen  string // context and core
	base  int    // where seen begins in the text
	core  int    // where the core begins in seen
	plain *plain // of seen; made when it is needed
}

func newAligner(text string, c pipeline.Chunk) *aligner {
	return &aligner{seen: text[c.Context:c.End], base: c.Context, core: c.Start - c.Context}
}

// find places a quote: word for word, else but for white space, punctuation, case and characters without a glyph. The
// core comes before the context. A quote that stands nowhere so has no place: nothing is guessed.
func (a *aligner) find(quote string) spot {
	quote = strings.TrimSpace(quote)
	if !strings.ContainsFunc(quote, isContent) {
		return spot{}
	}
	if start, ok := a.exact(quote); ok {
		return spot{a.base + start, a.base + start + len(quote), pipeline.MatchExact}
	}
	if start, end, ok := a.tolerant(quote); ok {
		return spot{a.base + start, a.base + end, pipeline.MatchNormalised}
	}
	return spot{}
}

// exact finds the quote as it is, between word boundaries, first in the core.
func (a *aligner) exact(quote string) (start int, ok bool) {
	places := occurrences(a.seen, quote)
	inContext := -1
	for _, p := range places {
		switch {
		case !bounded(a.seen, p, p+len(quote)):
		case p >= a.core:
			return p, true
		case inContext < 0:
			inContext = p
		}
	}
	return inContext, inContext >= 0
}

// tolerant finds the plain form of the quote in the plain form of the text.
func (a *aligner) tolerant(quote string) (start, end int, ok bool) {
	if a.plain == nil {
		p := plainOf(a.seen)
		a.plain = &p
	}
	wanted := plainOf(quote)
	first, found := [2]int{}, false
	for _, p := range occurrences(a.plain.text, wanted.text) {
		to := p + len(wanted.text)
		if !bounded(a.plain.text, p, to) || a.plain.splits(p) || a.plain.splits(to) {
			continue
		}
		s, e := a.plain.from[p], a.plain.to[to-1]
		if s >= a.core {
			s, e = widen(a.seen, s, e, quote)
			return s, e, true
		}
		if !found {
			first, found = [2]int{s, e}, true
		}
	}
	if !found {
		return 0, 0, false
	}
	s, e := widen(a.seen, first[0], first[1], quote)
	return s, e, true
}

// occurrences are all places of part in text.
func occurrences(text, part string) []int {
	var places []int
	for from := 0; part != "" && from+len(part) <= len(text); {
		i := strings.Index(text[from:], part)
		if i < 0 {
			break
		}
		places = append(places, from+i)
		_, size := utf8.DecodeRuneInString(text[from+i:])
		from += i + size
	}
	return places
}

// bounded says that text[start:end] cuts no word and no sign in two.
func bounded(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	first, _ := utf8.DecodeRuneInString(text[start:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !(start > 0 && joined(before, first)) && !(end < len(text) && joined(last, after))
}

// joined says that two characters that stand side by side belong to one word or one sign.
func joined(a, b rune) bool {
	const joiner = '\u200d'
	if a == joiner || b == joiner || unicode.Is(unicode.M, b) {
		return true
	}
	return wordy(a) && wordy(b)
}

// wordy says that c is part of a word in a script that puts something between words.
func wordy(c rune) bool {
	return (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.Is(unicode.M, c)) &&
		!unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// plain is a text in small letters, with one space for every run of white space and punctuation, without characters
// that have no glyph, and with the way back: byte i of it stands for bytes from[i] to to[i] of the text.
type plain struct {
	text     string
	from, to []int
}

func plainOf(text string) plain {
	p := plain{from: make([]int, 0, len(text)), to: make([]int, 0, len(text))}
	var out strings.Builder
	gap := false
	for i, c := range text {
		if invisible(c) {
			continue
		}
		if !isContent(c) {
			gap = true
			continue
		}
		size := utf8.RuneLen(c)
		for _, folded := range fold(c) {
			if !isContent(folded) {
				gap = true
				continue
			}
			if gap && out.Len() > 0 {
				out.WriteByte(' ')
				p.from, p.to = append(p.from, i), append(p.to, i)
			}
			gap = false
			n, _ := out.WriteRune(folded)
			for range n {
				p.from, p.to = append(p.from, i), append(p.to, i+size)
			}
		}
	}
	p.text = out.String()
	return p
}

// splits says that byte i of the plain text is inside of what one character was folded to.
func (p plain) splits(i int) bool { return i > 0 && i < len(p.text) && p.to[i-1] > p.from[i] }

// fold is c in small letters and taken apart: a ligature into its letters, a letter with an accent into both.
func fold(c rune) string {
	if c < utf8.RuneSelf {
		return string(unicode.ToLower(c))
	}
	return strings.ToLower(norm.NFKD.String(string(c)))
}

// isContent says that c is more than white space or punctuation.
func isContent(c rune) bool {
	return !unicode.IsSpace(c) && !unicode.IsPunct(c) && !unicode.Is(unicode.Sk, c) && !unicode.IsControl(c) && !invisible(c)
}

// invisible are soft hyphens, joiners, marks of direction, and selectors of a glyph.
func invisible(c rune) bool {
	return unicode.Is(unicode.Cf, c) || c >= 0xFE00 && c <= 0xFE0F
}

// widen takes punctuation that both the quote and the text have at the ends into the place.
func widen(text string, start, end int, quote string) (int, int) {
	first := strings.IndexFunc(quote, isContent)
	for lead := quote[:first]; lead != ""; {
		wanted, size := utf8.DecodeLastRuneInString(lead)
		c, width := utf8.DecodeLastRuneInString(text[:start])
		if width == 0 || !alike(c, wanted) {
			break
		}
		start, lead = start-width, lead[:len(lead)-size]
	}
	last := strings.LastIndexFunc(quote, isContent)
	_, size := utf8.DecodeRuneInString(quote[last:])
	for _, wanted := range quote[last+size:] {
		c, width := utf8.DecodeRuneInString(text[end:])
		if width == 0 || !alike(c, wanted) {
			break
		}
		end += width
	}
	return start, end
}

// alike says that two signs are the same, or quotes or dashes both.
func alike(a, b rune) bool {
	const quotes = "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
	both := func(set string) bool { return strings.ContainsRune(set, a) && strings.ContainsRune(set, b) }
	return !unicode.IsSpace(a) && (a == b || both(quotes) || unicode.Is(unicode.Pd, a) && unicode.Is(unicode.Pd, b))
}
