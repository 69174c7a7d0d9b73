package pipeline

import (
	"cmp"
	"slices"
	"strings"
)

// Gap is the cells that are missing for one reason.
type Gap struct {
	Kind   Kind     `json:"kind"`
	Cause  string   `json:"cause"`            // of the first of them
	Varied bool     `json:"varied,omitempty"` // other causes of them differ in their numbers
	Cells  int      `json:"cells"`
	Tasks  []TaskID `json:"tasks"`
	Stages []string `json:"stages,omitempty"`
	Calls  []string `json:"calls"`

	seen map[string]bool // what is in the lists already
}

// Gaps groups missing cells by the kind and cause of their failure, the largest group first. Causes that differ in
// numbers only are one: "refused chunk 3" and "refused chunk 4" need one answer.
func Gaps(missing []Cell) []Gap {
	type reason struct {
		kind  Kind
		cause string
	}
	index := map[reason]int{}
	var gaps []Gap
	for _, cell := range missing {
		key := reason{cell.Failure.Kind, withoutNumbers(cell.Failure.Cause)}
		i, known := index[key]
		if !known {
			i = len(gaps)
			index[key] = i
			gaps = append(gaps, Gap{Kind: cell.Failure.Kind, Cause: cell.Failure.Cause, seen: map[string]bool{}})
		}
		gaps[i].Varied = gaps[i].Varied || cell.Failure.Cause != gaps[i].Cause
		gaps[i].add(cell)
	}
	slices.SortStableFunc(gaps, func(a, b Gap) int { return cmp.Compare(b.Cells, a.Cells) })
	return gaps
}

// Why is the reason for people, as a failure's is told.
func (g Gap) Why() string { return Failure{Kind: g.Kind, Cause: g.Cause}.String() }

func (g *Gap) add(cell Cell) {
	g.Cells++
	if task := WorkTask(cell.Chunk); g.first("task " + string(task)) {
		g.Tasks = append(g.Tasks, task)
	}
	if g.first("call " + cell.Call) {
		g.Calls = append(g.Calls, cell.Call)
	}
	if stage := cell.Failure.Stage; stage != "" && g.first("stage "+stage) {
		g.Stages = append(g.Stages, stage)
	}
}

func (g *Gap) first(name string) bool {
	if g.seen[name] {
		return false
	}
	g.seen[name] = true
	return true
}

func withoutNumbers(cause string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, cause)
}
