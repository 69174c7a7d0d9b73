package memory_test

import (
	"fmt"
	"testing"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// The same store in tiny pages: whoever reads by pages learns the same.
func TestTinyPages(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			a, b := harness(t), harness(t)
			b.Store.(*memory.Store).PageBytes = 1
			pipelinetest.Differential(t, seed, 400, a, b)
		})
	}
}

// Whatever is thrown at the rows, what is promised of every row holds.
func TestRowsStaySmall(t *testing.T) {
	store := memory.New()
	row := pipelinetest.NewRow("job-1", pipeline.WorkTask(99999), func(row *pipeline.Task) {
		row.Reason = pipeline.Fail(pipeline.Ambiguous, "%0400d", 1).At("consolidate", "consolidate-indemnification")
		row.Reason.Detail = pipeline.Cut(fmt.Sprintf("%0400d", 1), pipeline.MaxDetail)
		row.Bodies = []int64{11, 22, 33, 44, 55}
	})
	if _, err := store.PutTasks(t.Context(), []pipeline.Task{row}); err != nil {
		t.Fatal(err)
	}
	if size := len(pipeline.Encode(row)); size > 1500 {
		t.Errorf("a row with the longest reason has %d bytes, want at most 1500", size)
	}
}
