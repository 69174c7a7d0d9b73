package main

import (
	"fmt"
	"slices"
)

// spread is what several runs of one figure came to.
type spread struct {
	median, least, most float64
	n                   int
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return spread{median: quantile(sorted, 0.5), least: sorted[0], most: sorted[len(sorted)-1], n: len(sorted)}
}

// quantile of sorted values, between the two nearest.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// text is the spread with a format for each number.
func (s spread) text(format string) string {
	if s.n == 0 {
		return "no run"
	}
	return fmt.Sprintf(format+" ("+format+" .. "+format+", n=%d)", s.median, s.least, s.most, s.n)
}
