package report

import (
	"slices"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// numbered is a finding with its number in the report, from 1.
type numbered struct {
	Number int
	pipeline.Finding
	Placed bool   // its quote is marked in the text
	About  string // its category, for people
	By     string // its analyst, for people
	Place  string
	From   []string // titles of the calls that found the same
}

// part is one chunk's share of the text. The chunks tile it.
type part struct {
	Chunk    int
	Heading  string
	Missing  int // cells of the chunk without an answer
	Calls    int
	Segments []segment
}

// segment is a stretch of text that the same findings cover.
type segment struct {
	Text     string
	Severity pipeline.Severity // of the gravest that cover it; "" if none does
	First    int               // number of that one
	Starts   []int             // findings that begin here
	Ends     []int             // findings that end with it
}

// placed says that a finding's offsets hold its quote: a mark on other words is worse than none.
func placed(text string, f pipeline.Finding) bool {
	return f.Grounded() &&
		f.Start >= 0 && f.Start < f.End && f.End <= len(text) &&
		utf8.RuneStart(text[f.Start]) && (f.End == len(text) || utf8.RuneStart(text[f.End])) &&
		text[f.Start:f.End] == f.Quote
}

// parts cuts the text at every chunk and at every begin and end of a mark, so that overlapping marks are told apart.
func (d Data) parts(findings []numbered) []part {
	missing := map[int]int{}
	for _, cell := range d.Result.Missing {
		missing[cell.Chunk]++
	}
	var parts []part
	for _, c := range chunksOf(d.Text, d.Result.Manifest) {
		parts = append(parts, part{
			Chunk: c.Index, Heading: c.Heading, Missing: missing[c.Index], Calls: d.Definition.Calls(),
			Segments: segments(d.Text, c.Start, c.End, findings),
		})
	}
	return parts
}

// chunksOf is the manifest's chunks if they tile the text, else the text as one: no word of it is left out.
func chunksOf(text string, m pipeline.Manifest) []pipeline.Chunk {
	at := 0
	for _, c := range m.Chunks {
		if c.Start != at || c.End < c.Start || c.End > len(text) {
			return []pipeline.Chunk{{End: len(text)}}
		}
		at = c.End
	}
	if at != len(text) || len(m.Chunks) == 0 {
		return []pipeline.Chunk{{End: len(text)}}
	}
	return m.Chunks
}

func segments(text string, start, end int, findings []numbered) []segment {
	cuts := []int{start, end}
	var here []numbered
	for _, f := range findings {
		if !f.Placed || f.Start >= end || f.End <= start {
			continue
		}
		here = append(here, f)
		cuts = append(cuts, max(start, f.Start), min(end, f.End))
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var all []segment
	for i := 0; i+1 < len(cuts); i++ {
		s := segment{Text: text[cuts[i]:cuts[i+1]]}
		for _, f := range here {
			if f.Start >= cuts[i+1] || f.End <= cuts[i] {
				continue
			}
			if s.Severity == "" || f.Severity.Rank() < s.Severity.Rank() {
				s.Severity, s.First = f.Severity, f.Number
			}
			if f.Start == cuts[i] {
				s.Starts = append(s.Starts, f.Number)
			}
			if f.End == cuts[i+1] {
				s.Ends = append(s.Ends, f.Number)
			}
		}
		all = append(all, s)
	}
	return all
}

// number numbers the findings as they are sorted.
func (d Data) number() []numbered {
	var all []numbered
	for i, f := range d.Result.Findings {
		all = append(all, numbered{
			Number: i + 1, Finding: f, Placed: placed(d.Text, f),
			About: d.title(f), By: d.analyst(f), Place: d.where(f), From: d.titles(f.Contributors),
		})
	}
	return all
}
