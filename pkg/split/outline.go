package split

import (
	"sort"
	"strings"

	"holdfast/pkg/pipeline"
)

// heading is where a section of the document begins.
type heading struct {
	pos   int    // of its first character
	body  int    // where what it stands over begins: nothing is cut between pos and there
	rank  int    // 0 part, 1 article, 2 and more a numbered section by its depth
	label string // as it stands in the text: "ARTICLE IV", "2.1"
	title string // what follows the label, if that is short
}

const (
	rankPart    = 0
	rankArticle = 1
	rankSection = 2
)

func (h heading) String() string {
	if h.title == "" || h.label == "" {
		return h.label + h.title
	}
	return h.label + " " + h.title
}

// strength is how good a place the heading is to begin a chunk.
func (h heading) strength() strength {
	switch {
	case h.rank == rankPart:
		return atPart
	case h.rank == rankArticle:
		return atArticle
	case h.label == "":
		return atTitle
	case h.rank == rankSection:
		return atSection
	case h.rank == rankSection+1:
		return atSubsection
	default:
		return atParagraphNumber
	}
}

// outline is the headings of a text, in order.
type outline struct {
	text     string
	headings []heading
}

// outlineOf finds the headings: named ones (EXHIBIT A, ARTICLE IV, Section 2), numbers, lines in capitals. A number
// counts only where it continues the numbering that runs there, so that amounts, dates and citations do not.
func outlineOf(text string) outline {
	o := outline{text: text}
	var n numbering
	candidates := candidates(text)
	for i, c := range candidates {
		rank, accepted := n.accept(c, candidates[i+1:min(len(candidates), i+1+lookahead)])
		if !accepted {
			continue
		}
		h := heading{pos: c.pos, rank: rank, label: c.label}
		h.title, h.body = title(text, c.end)
		o.headings = append(o.headings, h)
	}
	return o
}

// at is the heading that begins at p.
func (o outline) at(p int) (heading, bool) {
	i := o.after(p) - 1
	if i < 0 || o.headings[i].pos != p {
		return heading{}, false
	}
	return o.headings[i], true
}

// binds says that p lies between a heading and what it stands over.
func (o outline) binds(p int) bool {
	i := o.after(p-1) - 1
	return i >= 0 && p <= o.headings[i].body
}

// after is the index of the first heading behind p.
func (o outline) after(p int) int {
	return sort.Search(len(o.headings), func(i int) bool { return o.headings[i].pos > p })
}

// maxHeading bounds a path of headings, in bytes: thousands of chunks have to fit into one manifest.
const maxHeading = 120

// pathLookback is how many headings before a place are searched for those that it stands under.
const pathLookback = 200

// path is the headings that the place p stands under, outermost first.
func (o outline) path(p int) string {
	var parts []string
	last := o.after(p) - 1
	rank := 1 << 30
	for i := last; i >= 0 && i > last-pathLookback && rank > rankPart; i-- {
		if h := o.headings[i]; h.rank < rank {
			rank = h.rank
			parts = append([]string{pipeline.Cut(h.String(), maxHeading/2)}, parts...)
		}
	}
	path := strings.Join(parts, " / ")
	for len(path) > maxHeading && len(parts) > 1 { // the innermost says most
		parts = parts[1:]
		path = strings.Join(parts, " / ")
	}
	return path
}

// maxTitle is the longest text after a label that is a title and not the section itself, in bytes.
const maxTitle = 80

// title is the title that begins at or after i, if there is one, on the same line or in capitals on the next, and where
// the body begins behind it.
func title(text string, i int) (title string, body int) {
	start := skipBlanks(text, i)
	if below := min(start+1, len(text)); start < len(text) && text[start] == '\n' && shouts(firstLine(text, skipBlanks(text, below), maxTitle+1)) {
		start = skipBlanks(text, below)
	}
	line := firstLine(text, start, maxTitle+1)
	end := -1
	for at := range line {
		if c := line[at]; (c == '.' || c == ':') && (at+1 == len(line) || line[at+1] == ' ') && !abbreviated(line[:at]) {
			end = at
			break
		}
	}
	switch {
	case end >= 0:
	case len(line) <= maxTitle:
		end = len(line)
	default:
		return "", start
	}
	return strings.TrimSpace(line[:end]), skipSpace(text, min(start+end+1, len(text)))
}

// firstLine is the text from i to the end of its line, at most limit bytes of it.
func firstLine(text string, i, limit int) string {
	line := pipeline.Cut(text[i:], limit)
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	return strings.TrimRight(line, " \t\r")
}
