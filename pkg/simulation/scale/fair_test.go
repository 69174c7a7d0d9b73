package scale

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// One tenant has a huge document, one twenty that are equal, one five, one a single one. The equal ones end together,
// whosever they are.
func TestEqualDocumentsOfUnequalTenantsEndTogether(t *testing.T) {
	huge, chunks, workers := size(120, 30), size(10, 5), size(10, 6)
	loads := map[string]int{"many": size(20, 5), "some": size(5, 2), "one": 1}
	in(t, 20_000_000, func(w *world) {
		w.fleet(workers, 16, 4)
		all := []pipeline.JobID{w.submit("huge", "huge-000", huge)}
		time.Sleep(20 * time.Second) // every claim is held by the huge one
		var equal []pipeline.JobID
		for _, tenant := range []string{"many", "some", "one"} {
			for n := range loads[tenant] {
				equal = append(equal, w.submit(tenant, fmt.Sprintf("%s-%03d", tenant, n), chunks))
			}
		}
		took := w.took(equal)
		ended := w.took(all)[0]
		ratio := float64(slices.Max(took)) / float64(slices.Min(took))
		t.Logf("%d equal documents of three tenants beside a huge one, slowest / fastest %.2f: %v; the huge one %v after them", len(equal), ratio, took, ended)
		if ratio > 1.25 {
			t.Errorf("the slowest of %d equal documents took %.2f times as long as the fastest, want at most 1.25", len(equal), ratio)
		}
		w.sound(append(all, equal...), chunks)
	})
}
