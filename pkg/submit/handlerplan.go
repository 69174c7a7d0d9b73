package submit

import (
	"fmt"

	"holdfast/pkg/pipeline"
)

// handlerLines is the plan of work that is not a model's: items and tries, no tokens.
func handlerLines(p pipeline.Plan) []string {
	n := pipeline.Count
	lines := []string{fmt.Sprintf("%s, each the work of %s: at most %s tries each, %s in all",
		items(p.Cells), p.Model.Name, n(p.PerTry), n(p.Cells*p.PerTry))}
	if p.Stored > 0 {
		lines = append(lines, fmt.Sprintf("stored answers are used for %s of them: at most %s left to run", n(p.Stored), items(p.Cells-p.Stored)))
	}
	if p.Dearest == 0 {
		return lines
	}
	return append(lines,
		fmt.Sprintf("once      %10s  each of %s run once, at the most that a run costs: %s", p.Once, n(p.Cells-p.Stored), p.Largest),
		fmt.Sprintf("expected  %10s  once x %.2f: %.0f %% of the tries fail and are run again", p.Expected, 1+p.FailShare, 100*p.FailShare),
		fmt.Sprintf("worst     %10s  %s tries of each item: %s x %s for all %s%s", p.Worst, n(p.PerTry), n(p.PerTry), p.Dearest, n(p.Cells), ifUnused(p)),
		fmt.Sprintf("ceiling   %10s  %s", p.Ceiling, ceilingNote(p)),
	)
}

func items(n int) string { return pipeline.CountOf(n, "item", "items") }
