package split

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strength is how good a place is to cut: the strongest in reach is taken.
type strength int

const (
	nowhere strength = iota - 1
	anywhere
	atSpace
	atComma
	atSemicolon
	atSentence
	atLine
	atParagraph
	atParagraphNumber
	atSubsection
	atTitle
	atSection
	atArticle
	atPart
)

// gap is what lies before a word.
type gap struct {
	width    int  // white space, in bytes
	newlines int  //
	last     rune // the character before it; 0 at the start of the text
	sentence bool // a sentence ends before it
	cites    bool // the word before it asks for what follows: "Section", "of"
}

// maxGap bounds how far back a gap is measured.
const maxGap = 512

// gapBefore measures the white space before i.
func gapBefore(text string, i int) gap {
	var g gap
	at := i
	for at > 0 && g.width < maxGap {
		c, size := utf8.DecodeLastRuneInString(text[:at])
		if !unicode.IsSpace(c) {
			break
		}
		if c == '\n' {
			g.newlines++
		}
		at -= size
		g.width += size
	}
	if at == 0 {
		g.newlines = max(g.newlines, 2)
		return g
	}
	g.last, _ = utf8.DecodeLastRuneInString(text[:at])
	g.sentence = endsSentence(text[:at])
	g.cites = g.newlines > 0 && citing[strings.ToLower(lastWord(text[:at]))]
	return g
}

// citing are words that no sentence and no heading ends with: what follows is their object, on the next line or not.
var citing = map[string]bool{
	"section": true, "sections": true, "clause": true, "clauses": true, "article": true, "articles": true,
	"paragraph": true, "paragraphs": true, "exhibit": true, "schedule": true, "annex": true, "appendix": true,
	"of": true, "in": true, "to": true, "under": true, "by": true, "with": true, "and": true, "or": true,
	"the": true, "this": true, "per": true, "see": true, "at": true, "from": true, "than": true, "attached": true,
}

// abbreviations that a dot belongs to, in small letters.
var abbreviations = map[string]bool{
	"inc": true, "corp": true, "ltd": true, "co": true, "llc": true, "no": true, "nos": true, "sec": true, "art": true,
	"mr": true, "mrs": true, "ms": true, "dr": true, "st": true, "vs": true, "v": true, "e.g": true, "i.e": true,
	"u.s": true, "u.k": true, "u.s.c": true, "cf": true, "para": true, "dept": true, "approx": true, "jr": true, "sr": true,
	"d.c": true, "a.m": true, "p.m": true, "etc": true,
}

// abbreviated says that the dot behind text belongs to its last word.
func abbreviated(text string) bool {
	word := lastWord(text)
	return len(word) == 1 && word != "I" || abbreviations[strings.ToLower(word)]
}

const closing = "\"')]}\u201d\u2019\u00bb"

// endsSentence says that text ends with a sentence: a full stop that belongs to no abbreviation, perhaps in quotes.
func endsSentence(text string) bool {
	text = strings.TrimRight(text[max(0, len(text)-40):], closing)
	if text == "" {
		return false
	}
	switch c, _ := utf8.DecodeLastRuneInString(text); c {
	case '!', '?', '\u2026', '\u3002', '\uff01', '\uff1f':
		return true
	case '.':
		return !abbreviated(text[:len(text)-1])
	}
	return false
}

// lastWord is the last word of text without the signs before it, at most 24 bytes.
func lastWord(text string) string {
	tail := text[max(0, len(text)-24):]
	if i := strings.LastIndexAny(tail, " \t\n\r"); i >= 0 {
		tail = tail[i+1:]
	}
	return strings.TrimLeft(tail, "\"'([\u201c\u2018")
}

// strengthAt is how good a place p is to begin a chunk.
func (o outline) strengthAt(p int) strength {
	before, _ := utf8.DecodeLastRuneInString(o.text[:p])
	next, _ := utf8.DecodeRuneInString(o.text[p:])
	switch {
	case unicode.IsSpace(next) || joins(before, next):
		return nowhere
	case !unicode.IsSpace(before):
		return insideWord(before)
	case o.binds(p):
		return anywhere
	}
	if h, ok := o.at(p); ok {
		return h.strength()
	}
	return gapStrength(gapBefore(o.text, p), next)
}

func gapStrength(g gap, next rune) strength {
	begins := !unicode.IsLower(next)
	switch {
	case g.newlines == 0 && g.sentence && begins:
		return atSentence
	case g.newlines == 1 && g.sentence:
		return atLine
	case g.newlines > 1 && (g.sentence || g.last == 0):
		return atParagraph
	case g.last == ';' && g.newlines > 0:
		return atSentence
	case g.last == ';':
		return atSemicolon
	case g.last == ':' || g.last == ',':
		return atComma
	case g.newlines > 1 && begins && !unicode.IsDigit(next): // digits: a page number inside of a sentence
		return atLine
	}
	return atSpace
}

// insideWord is the strength of a place without white space before it: scripts without spaces have their stops.
func insideWord(before rune) strength {
	switch before {
	case '\u3002', '\uff01', '\uff1f':
		return atSentence
	case '\uff1b':
		return atSemicolon
	case '\u3001', '\uff0c', '\uff1a':
		return atComma
	}
	return anywhere
}

// joins says that the two characters make one sign: an accent, a joined emoji.
func joins(before, next rune) bool {
	const joiner = '\u200d'
	return before == joiner || next == joiner || next >= 0x300 && unicode.Is(unicode.M, next)
}

func skipSpace(text string, i int) int {
	for i < len(text) {
		c, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsSpace(c) {
			break
		}
		i += size
	}
	return i
}

// skipBlanks skips spaces within a line.
func skipBlanks(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	return i
}

func endOfWord(text string, i int) int {
	for i < len(text) {
		c, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(c) {
			break
		}
		i += size
	}
	return i
}
