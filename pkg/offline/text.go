package offline

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// span is a range of bytes of text.plain.
type span struct{ start, end int }

// text is the part of the document that a request shows: as it is, and plain, with spaces and page numbers made one
// space, so that rules need not know how the text was set. Every quote is cut from the original.
type text struct {
	original  string
	plain     string
	lower     string // plain in lower case, byte for byte
	at        []int  // for each byte of plain, where it stands in original; one more for the end
	sentences []span
	titles    []span // of each sentence: the heading that it stands under; empty if there is none

	by     *Classifier // nil is the one that ships
	judged sync.Once   // likely is made when it is first asked for
	likely [][]float32

	mu   sync.Mutex
	hits map[*rule][]hit
}

const maxQuote = 320

// texts are the last few: the calls of a chunk all show the same one. A text is only read once it is made.
var texts recent

const mostRecent = 16

type recent struct {
	mu   sync.Mutex
	list []*text
}

func (r *recent) of(original string, by *Classifier) *text {
	r.mu.Lock()
	for _, t := range r.list {
		if t.original == original && t.by == by {
			r.mu.Unlock()
			return t
		}
	}
	r.mu.Unlock()
	made := newText(original)
	made.by = by
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, made)
	if len(r.list) > mostRecent {
		r.list = append([]*text(nil), r.list[1:]...)
	}
	return made
}

func newText(original string) *text {
	t := &text{original: original}
	t.flatten()
	t.lower = lower(t.plain)
	t.split()
	t.title()
	return t
}

// lower changes the letters of ASCII alone, so that every byte keeps its place.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// longestTitle is how long a sentence may be that is a heading: "Assignment."
const longestTitle = 60

// title finds the heading of each sentence: what split left out before it, or a sentence too short to be more.
func (t *text) title() {
	t.titles = make([]span, len(t.sentences))
	under, last := span{}, 0
	for i, s := range t.sentences {
		if gap := t.trim(span{last, s.start}); gap.end-gap.start > 3 {
			under = gap
		}
		t.titles[i], last = under, s.end
		if s.end-s.start <= longestTitle {
			under = s
		}
	}
}

var skipped = regexp.MustCompile(`(?:\n[ \t]*\d{1,3}[ \t]*\n|[\s\x{00a0}]|&[a-z]sp;|&[a-z]bsp;)+`)

// flatten makes plain. A blank line becomes "\n" and other space " ".
func (t *text) flatten() {
	var b strings.Builder
	put := func(s string, at int) {
		b.WriteString(s)
		for range len(s) {
			t.at = append(t.at, at)
		}
	}
	rest := 0
	for _, gap := range skipped.FindAllStringIndex(t.original, -1) {
		t.putWords(put, rest, gap[0])
		space := " "
		if strings.Count(t.original[gap[0]:gap[1]], "\n") > 1 {
			space = "\n"
		}
		put(space, gap[0])
		rest = gap[1]
	}
	t.putWords(put, rest, len(t.original))
	t.at = append(t.at, len(t.original))
	t.plain = b.String()
}

var straight = strings.NewReplacer("\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`)

func (t *text) putWords(put func(string, int), from, to int) {
	for from < to {
		r, size := utf8.DecodeRuneInString(t.original[from:to])
		if r < utf8.RuneSelf || r == utf8.RuneError {
			put(t.original[from:from+1], from)
			from++
			continue
		}
		// Every byte of the character points at its beginning, so that no quote can cut it in two.
		put(straight.Replace(t.original[from:from+size]), from)
		from += size
	}
}

var (
	abbreviation = regexp.MustCompile(`(?:\b(?:Inc|Corp|Ltd|Co|No|Nos|Sec|Art|Mr|Ms|Mrs|Dr|St|vs|e\.g|i\.e|U\.S|[A-Z])|^\(?[0-9.]{1,6})\.$`)
	itemBegins   = regexp.MustCompile(`^(?:and |or )?\([a-z0-9]{1,4}\) `)
)

// justHeading is a sentence that is nothing but a heading in capitals, or a number.
var justHeading = regexp.MustCompile(`^[0-9. ]*[A-Z ,;:'&/-]{0,70}\.?$`)

// split finds the sentences, and the items of lists, of plain.
func (t *text) split() {
	begin := 0
	end := func(i int) {
		s := t.trim(span{begin, i})
		if s.end-s.start > 1 && !justHeading.MatchString(t.plain[s.start:s.end]) {
			t.sentences = append(t.sentences, s)
		}
		begin = i
	}
	for i := 0; i < len(t.plain); i++ {
		if c := t.plain[i]; c != ' ' && c != '\n' {
			continue
		}
		if t.endsAt(begin, i) {
			end(i + 1)
		}
	}
	end(len(t.plain))
}

// endsAt says whether a sentence that began at begin ends before the space at i.
func (t *text) endsAt(begin, i int) bool {
	before, after := t.plain[begin:i], t.plain[i+1:]
	if before == "" || after == "" {
		return false
	}
	next, _ := utf8.DecodeRuneInString(after)
	upper := unicode.IsUpper(next) || unicode.IsDigit(next) || next == '(' || next == '"'
	last := before[len(before)-1]
	switch {
	case t.plain[i] == '\n' && upper && (len(before) < 5 || last != ',' && !unicode.IsLower(rune(last))):
		return !abbreviation.MatchString(before)
	case last == ';' || last == ':':
		return itemBegins.MatchString(after) || t.plain[i] == '\n'
	case !upper || len(before) < 5:
		return false
	}
	closed := strings.TrimRight(before, `")`)
	return strings.HasSuffix(closed, ".") && !abbreviation.MatchString(closed[max(0, len(closed)-8):]) ||
		strings.HasSuffix(closed, "!") || strings.HasSuffix(closed, "?")
}

func (t *text) trim(s span) span {
	for s.start < s.end && (t.plain[s.start] == ' ' || t.plain[s.start] == '\n') {
		s.start++
	}
	for s.start < s.end && (t.plain[s.end-1] == ' ' || t.plain[s.end-1] == '\n') {
		s.end--
	}
	return s
}

// quote is verbatim from the original: the sentence, or, of a long one, what stands around the match.
func (t *text) quote(sentence, found span) string {
	s := sentence
	if s.end-s.start > maxQuote {
		s = t.around(sentence, found)
		s.end -= len(danglingEnd.FindString(t.plain[s.start:s.end]))
	}
	return t.cut(t.trim(s))
}

// danglingEnd is the mark of a list's item whose text was cut off, and what leads to it.
var danglingEnd = regexp.MustCompile(`[ ,;:]*(?:(?: (?:and|or|without|by|that|based on whole or in part on))?,? ?\([a-z0-9]{1,4}\))+$`)

// around is at most maxQuote bytes of the sentence, with the match in them, cut where a clause or at least a word ends.
func (t *text) around(sentence, found span) span {
	s := sentence
	if found.start-sentence.start > maxQuote/3 {
		s.start = t.boundary(max(sentence.start, found.start-maxQuote/3), found.start)
	}
	limit := min(sentence.end, s.start+maxQuote)
	if limit == sentence.end {
		return s
	}
	s.end = limit
	floor := min(max(found.end, s.start+maxQuote/2), limit)
	if i := strings.LastIndexAny(t.plain[floor:limit], ",;)"); i >= 0 {
		s.end = floor + i
		if t.plain[s.end] == ')' {
			s.end++
		}
	} else if i := strings.LastIndexByte(t.plain[s.start:limit], ' '); i > 0 {
		s.end = s.start + i
	}
	return s
}

// boundary is where a clause, or else a word, begins between from and to.
func (t *text) boundary(from, to int) int {
	for _, mark := range []string{"; ", ", ", " ("} {
		if i := strings.Index(t.plain[from:to], mark); i >= 0 {
			if mark == " (" {
				return from + i + 1
			}
			return from + i + len(mark)
		}
	}
	if i := strings.IndexByte(t.plain[from:to], ' '); i >= 0 {
		return from + i + 1
	}
	return to
}

func (t *text) cut(s span) string {
	if s.start >= s.end {
		return ""
	}
	last := t.at[s.end-1]
	_, size := utf8.DecodeRuneInString(t.original[last:])
	return t.original[t.at[s.start] : last+size]
}

// contains says that the quote stands in the text, but for spaces.
func (t *text) contains(quote string) bool {
	return strings.Contains(words(t.plain), words(newText(quote).plain))
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }
