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

// A job of many thousand rows takes long to read: a worker must have time left to work.
func TestSizesOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		store := memory.New()
		policy := pipeline.DefaultPolicy()
		policy.MaxJobClaims = 4
		slow := pipelinetest.Wrap(counting(store, &pages), func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Tasks" {
				time.Sleep(policy.JobPoll)
			}
			return do(ctx)
		})
		s := &sizes{store: slow, clock: pipeline.NewRealClock(), policy: policy}
		var rows []pipeline.Task
		for n := range 5 {
			rows = append(rows, pipelinetest.NewRow("j", pipeline.WorkTask(n)))
		}
		if _, err := store.PutTasks(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		opens := 0
		for range 1000 {
			if _, err := s.claims(t.Context(), "j"); err != nil {
				t.Fatal(err)
			}
			if s.mayOpen("j") {
				opens++
			}
			time.Sleep(policy.JobPoll / 5)
		}
		if pages > 12 || pages < 5 || opens > 12 || opens < 5 {
			t.Errorf("read all rows %d times and looked at the finalize %d times in 200 times as long as one reading takes, want about 10", pages, opens)
		}
	})
}
