package pipelines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a definition file.
type Problem struct {
	File string
	Line int
	Text string // what is wrong and what to do

	cause bool // others may only follow from it
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// DefinitionError is everything that is wrong with a definition, in the order of its files and lines; fields of unknown
// names come first, since others may be missing only because of them.
type DefinitionError struct{ Problems []Problem }

// maxShown bounds how many problems one error prints.
const maxShown = 20

// Error is one line for each problem.
func (e *DefinitionError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for i, p := range e.Problems {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Problems)-maxShown))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// place is where in the files something stands.
type place struct {
	file string
	line int
}

// problems collects what is wrong, each kind of problem once a line: a list of 88 calls does not say it 88 times.
type problems struct {
	show func(file string) string
	list []Problem
	seen map[string]bool
}

func (p *problems) add(at place, format string, args ...any) {
	key := fmt.Sprintf("%s:%d:%s", at.file, at.line, format)
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	p.list = append(p.list, Problem{File: p.show(at.file), Line: max(at.line, 1), Text: fmt.Sprintf(format, args...)})
}

// unknown says that a mapping has a field that means nothing there, and which it may have been meant to be.
func (p *problems) unknown(at place, what, name string, fields []string) {
	before := len(p.list)
	meant := ""
	if near := nearest(name, fields); near != "" {
		meant = fmt.Sprintf(" (did you mean %s?)", near)
	}
	p.add(at, "%s: there is no field %q%s; the fields are %s", what, name, meant, names(fields))
	for i := range p.list[before:] {
		p.list[before+i].cause = true
	}
}

// nearest is the name that is at most two letters away from what was written; "" if none is.
func nearest(written string, all []string) string {
	best, least := "", 3
	for _, name := range all {
		if n := distance(written, name); n < least && n <= len(name)/2 {
			best, least = name, n
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or changed to make one of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := left
			if a[i] != b[j] {
				changed++
			}
			left = row[j+1]
			row[j+1] = min(changed, left+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		if a.cause != b.cause {
			if a.cause {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &DefinitionError{Problems: p.list}
}

// names lists what there is, for the second half of an error.
func names(all []string) string {
	const most = 12
	switch {
	case len(all) == 0:
		return "(none)"
	case len(all) > most:
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}
