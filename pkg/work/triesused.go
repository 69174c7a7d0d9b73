package work

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// triesUsed is ErrTriesUsed with what used them up: healthy work that a deploy stopped again and again says so.
func (a *attempt) triesUsed(ctx context.Context, limit int) error {
	h, err := pipeline.ReadHistory(ctx, a.w.cfg.Store, a.claim.Ref)
	if err != nil {
		return pipeline.ErrTriesUsed
	}
	used := map[pipeline.Kind]int{}
	for _, r := range h.Records {
		if r.Charged > 0 && !r.Failure.None() {
			used[r.Failure.Kind] += r.Charged
		}
	}
	if len(used) == 0 {
		return pipeline.ErrTriesUsed
	}
	var kinds []string
	for _, kind := range slices.SortedFunc(maps.Keys(used), func(x, y pipeline.Kind) int {
		return cmp.Or(used[y]-used[x], cmp.Compare(x, y))
	}) {
		kinds = append(kinds, fmt.Sprintf("%d %s", used[kind], kind))
	}
	return fmt.Errorf("%w: of %d tries, by how their attempts ended: %s", pipeline.ErrTriesUsed, limit, strings.Join(kinds, ", "))
}
