package work

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// counting counts how often the rows of a job are read.
func counting(store pipeline.Store, pages *int) pipeline.Store {
	return pipelinetest.Wrap(store, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
		if op.Name == "Tasks" {
			*pages++
		}
		return do(ctx)
	})
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks int
		reads int // by a hundred deliveries within half a second
		opens int
	}{
		{"the rows of a small job are read once, and its finalize is looked for at each end", 3, 1, 100},
		{"the rows of a large job are read at most every JobPoll, and so is its finalize", 5, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pages := 0
				store := memory.New()
				policy := pipeline.DefaultPolicy()
				policy.MaxJobClaims = 4
				s := &sizes{store: counting(store, &pages), clock: pipeline.NewRealClock(), policy: policy}
				time.Sleep(time.Minute)
				rows := []pipeline.Task{pipelinetest.NewRow("j", pipeline.SplitTask, func(row *pipeline.Task) { row.Status = pipeline.TaskDone })}
				for n := range c.tasks {
					rows = append(rows, pipelinetest.NewRow("j", pipeline.WorkTask(n)))
				}
				if _, err := store.PutTasks(t.Context(), rows); err != nil {
					t.Fatal(err)
				}
				opens := 0
				for range 100 {
					if _, err := s.claims(t.Context(), "j"); err != nil {
						t.Fatal(err)
					}
					if s.mayOpen("j") {
						opens++
					}
				}
				if pages != c.reads || opens != c.opens {
					t.Errorf("got %d reads of all rows and %d looks at the finalize, want %d and %d", pages, opens, c.reads, c.opens)
				}
				time.Sleep(policy.JobPoll)
				if !s.mayOpen("j") {
					t.Error("after JobPoll the finalize is not looked for again")
				}
			})
		})
	}
}
