package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// printer writes what a person reads.
type printer struct{ out io.Writer }

// say prints a line.
func (p *printer) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// table prints rows in columns: the first to the left, the others to the right.
func (p *printer) table(rows ...[]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	p.say("")
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + gap)
				continue
			}
			line.WriteString("   " + gap + cell)
		}
		p.say("%s", strings.TrimRight(line.String(), " "))
	}
	p.say("")
}

// notes prints what the numbers rest on.
func (p *printer) notes(lines ...string) { p.notesFrom(1, lines...) }

// notesFrom is notes that go on counting.
func (p *printer) notesFrom(first int, lines ...string) {
	for i, line := range lines {
		p.say("  [%d] %s", first+i, line)
	}
	p.say("")
}

// number is n with thousands apart.
func number[T ~int | ~int64](n T) string {
	return pipeline.Count(int(n))
}

// dollars is an amount to the cent, with thousands apart.
func dollars(m pipeline.Money) string {
	cents := (m*100 + pipeline.Dollar/2) / pipeline.Dollar
	return fmt.Sprintf("$%s.%02d", number(cents/100), cents%100)
}

// share is a part of a whole in percent.
func share(part, whole int) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
