package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// goal is in how many categories the model should beat the baseline in recall and in precision.
const goal = 9

func report(out io.Writer, sheets []sheet) {
	first := sheets[0]
	fmt.Fprintln(out, "By category of the review. n: contracts with a marked clause. R: share of these in which a passage overlaps a marked")
	fmt.Fprintln(out, "clause. P: share of passages that do. absent: contracts of n that were said to have none. ungr.: findings without a place.")
	won := table(out, sheets, first.categories)
	fmt.Fprintf(out, "Better than the baseline in recall and precision: %d of %d categories (goal: %d). ", won, len(first.categories), goal)
	fmt.Fprint(out, "Without labels: indemnification, confidentiality_data.\n\n")
	fmt.Fprintln(out, "By check that asks about a marked kind of clause.")
	won = table(out, sheets, first.checks)
	fmt.Fprintf(out, "Better than the baseline in recall and precision: %d of %d checks.\n", won, len(first.checks))
	calls := 0
	for _, s := range sheets {
		calls += s.calls
	}
	fmt.Fprintf(out, "%d calls were asked and answered.\n", calls)
}

// table prints rows and says in how many the model is better in both.
func table(out io.Writer, sheets []sheet, rows []row) int {
	fmt.Fprintf(out, "%-41s %4s  %5s %5s %6s %6s  |  %5s %5s %6s\n", "", "n", "R", "P", "absent", "ungr.", "R", "P", "absent")
	won := 0
	var lost []string
	for _, r := range rows {
		var ours, base tally
		for _, s := range sheets {
			ours, base = ours.plus(s.ours[r.name]), base.plus(s.base[r.name])
		}
		mark := verdict(ours, base)
		if mark == "both" {
			won++
		} else {
			lost = append(lost, fmt.Sprintf("  %s: found in %d of %d contracts by the model with %d passages (%d right), in %d by the baseline with %d (%d right)",
				r.name, ours.found, ours.labelled, ours.passages, ours.right, base.found, base.passages, base.right))
		}
		fmt.Fprintf(out, "%-41s %4d  %5.2f %5.2f %6d %6s  |  %5.2f %5.2f %6d  %s\n", r.name, ours.labelled, ours.recall(), ours.precision(), ours.absent,
			percent(ours.ungrounded, ours.findings), base.recall(), base.precision(), base.absent, mark)
	}
	if len(lost) > 0 {
		fmt.Fprintf(out, "Where it is not better in both (why: scripts/eval/README.md):\n%s\n", strings.Join(lost, "\n"))
	}
	return won
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*share(part, whole))
}

func verdict(ours, base tally) string {
	var better []string
	if ours.recall() > base.recall() {
		better = append(better, "recall")
	}
	if ours.precision() > base.precision() {
		better = append(better, "precision")
	}
	if len(better) == 2 {
		return "both"
	}
	if len(better) == 0 {
		return "neither"
	}
	return strings.Join(slices.Concat([]string{"only"}, better), " ")
}
