package cuad

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// listed reads a list of texts as the labels have it: ['...', "..."], with backslash escapes.
func listed(cell string) []string {
	var all []string
	for i := 0; i < len(cell); i++ {
		quote := cell[i]
		if quote != '\'' && quote != '"' {
			continue
		}
		var b strings.Builder
		rest := cell[i+1:]
		for rest != "" && rest[0] != quote {
			r, _, tail, err := strconv.UnquoteChar(rest, quote)
			if err != nil { // an escape that Go does not know
				b.WriteByte(rest[0])
				rest = rest[1:]
				continue
			}
			b.WriteRune(r)
			rest = tail
		}
		if text := strings.TrimSpace(b.String()); text != "" {
			all = append(all, text)
		}
		i = len(cell) - len(rest)
	}
	return all
}

// places finds texts by their letters and digits alone, since labels and texts differ in spaces and page numbers.
type places struct {
	letters string
	at      []int // for each byte of letters, where it stands in the text; one more for the end
}

func newPlaces(text string) places {
	var p places
	var b strings.Builder
	for i, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		n, _ := b.WriteRune(unicode.ToLower(r))
		for range n {
			p.at = append(p.at, i)
		}
	}
	p.letters = b.String()
	p.at = append(p.at, len(text))
	return p
}

// shortest is how many letters a clause must have to be looked for.
const shortest = 8

func (p places) find(clause string) (Span, bool) {
	wanted := plain(clause)
	if len(wanted) < shortest {
		return Span{}, false
	}
	i := strings.Index(p.letters, wanted)
	if i < 0 {
		return Span{}, false
	}
	last := i + len(wanted)
	_, size := utf8.DecodeLastRuneInString(wanted)
	return Span{p.at[i], p.at[last-size] + size}, true
}
