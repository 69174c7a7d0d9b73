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
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// DefinitionError is everything that is wrong with a definition, in the order of its files and lines.
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

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
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
