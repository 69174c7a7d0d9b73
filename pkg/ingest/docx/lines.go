package docx

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"holdfast/pkg/ingest/unread"
	"holdfast/pkg/pipeline"
)

// between separates the cells of a row that fits a line.
const between = " | "

// line is a line of the text, with where its stretches come from.
type line struct {
	text string
	from []from
}

// from says that the text from at on is of the nth paragraph of a part of the document.
type from struct {
	at   int
	part string
	n    int
}

// join puts lines of one row beside each other.
func join(cells []line) line {
	var b strings.Builder
	var all []from
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(between)
		}
		for _, f := range cell.from {
			f.at += b.Len()
			all = append(all, f)
		}
		b.WriteString(cell.text)
	}
	return line{text: b.String(), from: all}
}

// row is the lines of a row: one, if each cell has at most one, else those of the cells one after the other.
func row(cells [][]line) []line {
	for len(cells) > 0 && len(cells[len(cells)-1]) == 0 {
		cells = cells[:len(cells)-1]
	}
	var flat []line
	for _, cell := range cells {
		if len(cell) > 1 || len(cell) == 1 && strings.Contains(cell[0].text, "\n") {
			return slices.Concat(cells...)
		}
		flat = append(flat, append(cell, line{})[0])
	}
	one := join(flat)
	if !strings.ContainsFunc(one.text, func(c rune) bool { return c != '|' && !unicode.IsSpace(c) }) {
		return nil
	}
	return []line{one}
}

// blank says that nobody sees anything of the line.
func (l line) blank() bool {
	return !strings.ContainsFunc(l.text, func(c rune) bool { return !unicode.IsSpace(c) })
}

// trimmed is the line without spaces at its ends.
func (l line) trimmed() line {
	const spaces = " \t\n"
	left := len(l.text) - len(strings.TrimLeft(l.text, spaces))
	l.text = strings.Trim(l.text, spaces)
	for i := range l.from {
		l.from[i].at = min(max(0, l.from[i].at-left), len(l.text))
	}
	return l
}

// document puts the lines together.
func document(lines []line, limit int) (pipeline.Document, error) {
	size := 0
	for _, l := range lines {
		size += len(l.text) + 1
	}
	if size > limit {
		return pipeline.Document{}, tooMuchText(limit)
	}
	var b strings.Builder
	b.Grow(size)
	origin := pipeline.Origin{Version: pipeline.OriginVersion, Format: "docx", Unit: "paragraph"}
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
		for i, f := range l.from {
			begin, end := f.at, len(l.text)+1
			if i == 0 {
				begin = 0
			}
			if i+1 < len(l.from) {
				end = l.from[i+1].at
			}
			origin.Add(f.part, f.n, end-begin)
		}
	}
	return pipeline.Document{Text: b.String(), Origin: origin}, nil
}

func tooMuchText(limit int) error {
	return fmt.Errorf("%w: it holds more than %d MB of text; split it into several documents", unread.ErrTooLarge, limit>>20)
}
