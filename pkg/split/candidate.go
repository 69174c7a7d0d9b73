package split

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// candidate is what looks like the beginning of a section.
type candidate struct {
	pos, end int // of its label
	kind     candidateKind
	label    string
	path     []int // its number, where it has one
	inline   bool  // it does not begin a line
}

type candidateKind int

const (
	numbered candidateKind = iota // "1.", "2.1", "Section 3"
	article                       // "ARTICLE IV"
	part                          // "EXHIBIT A"
	capitals                      // a line in capitals, or marked as a heading
)

// candidates finds them at the start of lines, and inside of lines after a sentence or a wide gap: contracts are often
// one line from the first section to the last.
func candidates(text string) []candidate {
	var found []candidate
	for i := skipSpace(text, 0); i < len(text); {
		gap := gapBefore(text, i)
		if gap.newlines > 0 || gap.width >= 2 || gap.sentence {
			if c, ok := candidateAt(text, i, gap); ok {
				found = append(found, c)
			}
		}
		i = skipSpace(text, endOfWord(text, i))
	}
	return found
}

func candidateAt(text string, i int, gap gap) (candidate, bool) {
	if gap.newlines > 0 {
		if c, ok := capitalsAt(text, i, gap); ok {
			return c, true
		}
	}
	c, ok := numberAt(text, i)
	if !ok {
		c, ok = namedAt(text, i)
	}
	c.inline = gap.newlines == 0
	if !ok || gap.cites || c.kind == part && c.inline {
		return candidate{}, false
	}
	return c, true
}

// numberAt reads "1.", "1)", "2.1", "2.1.3." before a word with a capital.
func numberAt(text string, i int) (candidate, bool) {
	path, end := numberPath(text, i)
	if len(path) == 0 {
		return candidate{}, false
	}
	label := text[i:end]
	stopped := end < len(text) && (text[end] == '.' || text[end] == ')')
	if stopped {
		end++
	}
	if len(path) == 1 && !stopped || !beginsSection(text, end) {
		return candidate{}, false
	}
	return candidate{pos: i, end: end, kind: numbered, label: label, path: path}, true
}

// numberPath reads numbers with dots between them, none of them larger than any section's.
func numberPath(text string, i int) (path []int, end int) {
	for {
		start := i
		for i < len(text) && i < start+4 && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		n, err := strconv.Atoi(text[start:i])
		if err != nil || n > 200 {
			return nil, 0
		}
		path, end = append(path, n), i
		if i+1 >= len(text) || text[i] != '.' || text[i+1] < '0' || text[i+1] > '9' {
			return path, end
		}
		i++
	}
}

// names are the words that name a section, as they are written.
var names = map[string]candidateKind{
	"ARTICLE": article, "Article": article,
	"SECTION": numbered, "Section": numbered, "CLAUSE": numbered, "Clause": numbered,
	"EXHIBIT": part, "Exhibit": part, "SCHEDULE": part, "Schedule": part, "ANNEX": part, "Annex": part,
	"APPENDIX": part, "Appendix": part, "ATTACHMENT": part, "Attachment": part,
}

// namedAt reads "ARTICLE IV", "Section 2.1", "EXHIBIT A".
func namedAt(text string, i int) (candidate, bool) {
	wordEnd := endOfWord(text, i)
	kind, ok := names[text[i:wordEnd]]
	if !ok {
		return candidate{}, false
	}
	start := skipBlanks(text, wordEnd)
	end := min(endOfWord(text, start), start+12)
	mark := strings.TrimRight(text[start:end], ".:)-")
	end = start + len(mark)
	c := candidate{pos: i, kind: kind, label: text[i:end]}
	c.path, _ = numberPath(mark+" ", 0)
	if n := roman(mark); kind == article && len(c.path) == 0 && n > 0 {
		c.path = []int{n}
	}
	for end < len(text) && strings.IndexByte(".:)-", text[end]) >= 0 {
		end++
	}
	c.end = end
	switch {
	case mark == "" || strings.ContainsAny(mark, "()[],;"):
		return candidate{}, false
	case kind != part && (len(c.path) == 0 || !beginsSection(text, end)):
		return candidate{}, false
	case kind == part && (len(mark) > 6 || !standsAlone(text, end)):
		return candidate{}, false
	}
	return c, true
}

// roman is the value of a Roman numeral up to 89; 0 if it is none.
func roman(s string) int {
	values := map[rune]int{'I': 1, 'V': 5, 'X': 10, 'L': 50}
	sum, last := 0, 0
	for _, c := range s {
		v := values[c]
		if v == 0 {
			return 0
		}
		sum += v
		if last < v {
			sum -= 2 * last
		}
		last = v
	}
	return sum
}

// beginsSection says that what follows a label may be a section: the line ends there, or a word with a capital, a
// quote or a bracket follows after a space.
func beginsSection(text string, i int) bool {
	next := skipSpace(text, i)
	if next == i || next == len(text) {
		return next == len(text)
	}
	c, _ := utf8.DecodeRuneInString(text[next:])
	return unicode.IsUpper(c) || unicode.IsLetter(c) && !unicode.IsLower(c) || strings.ContainsRune("\"\u201c\u201e\u2018'([_*-\u2013\u2014", c)
}

// standsAlone says that the rest of the line is empty or a title.
func standsAlone(text string, i int) bool {
	rest := strings.TrimLeft(firstLine(text, i, maxTitle+1), " \t-\u2013\u2014")
	if rest == "" {
		return true
	}
	c, _ := utf8.DecodeRuneInString(rest)
	return len(rest) < maxTitle && (unicode.IsUpper(c) || c == '(' || c == '"' || c == '\u201c') && !strings.HasSuffix(rest, ".")
}

// capitalsAt reads a line in capitals that stands by itself, or one that markup calls a heading.
func capitalsAt(text string, i int, gap gap) (candidate, bool) {
	line := firstLine(text, i, maxTitle+2)
	if marks := len(line) - len(strings.TrimLeft(line, "#")); marks > 0 && marks < 7 && strings.HasPrefix(line[marks:], " ") {
		return candidate{pos: i, end: i + marks, kind: capitals}, true
	}
	next := skipSpace(text, min(i+len(line), len(text)))
	alone := gap.newlines > 1 || i == skipSpace(text, 0)
	if !alone || len(line) > maxTitle || !shouts(line) || shouts(firstLine(text, next, maxTitle+2)) && strings.Count(text[i+len(line):next], "\n") < 2 {
		return candidate{}, false
	}
	if _, numbered := numberAt(text, i); numbered {
		return candidate{}, false
	}
	if _, named := namedAt(text, i); named {
		return candidate{}, false
	}
	return candidate{pos: i, end: i, kind: capitals}, true
}

// shouts says that a line is in capitals and does not look like the rest of a sentence.
func shouts(line string) bool {
	first, _, _ := strings.Cut(line, " ")
	if citing[strings.ToLower(first)] || first == "FOR" {
		return false
	}
	letters := 0
	for _, c := range line {
		if unicode.IsLower(c) {
			return false
		}
		if unicode.IsUpper(c) {
			letters++
		}
	}
	return letters >= 5 && !strings.HasSuffix(line, ",") && !strings.HasSuffix(line, ";")
}
