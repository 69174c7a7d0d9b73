package scale

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

// waiting puts jobs whose chunks wait for workers that are not there: all of them come due at once.
func (w *world) waiting(jobs, chunks int) {
	w.Helper()
	for n := range jobs {
		id := pipeline.JobID(fmt.Sprintf("job-%03d", n))
		job := pipelinetest.NewJob(id, func(j *pipeline.Job) { j.Deadline = w.clock.Now().Add(24 * time.Hour) })
		split := pipelinetest.NewRow(id, pipeline.SplitTask, func(row *pipeline.Task) { row.Status, row.Stages, row.Accepted = pipeline.TaskDone, 1, 1 })
		if _, _, err := w.inner.Submit(w.ctx, job, split); err != nil {
			w.Fatal(err)
		}
		manifest := pipeline.Manifest{Chunks: make([]pipeline.Chunk, chunks)}
		if err := w.inner.PutItem(w.ctx, id, pipeline.ManifestKey, manifest.Encode()); err != nil {
			w.Fatal(err)
		}
		for c := range chunks {
			row := pipelinetest.NewRow(id, pipeline.WorkTask(c), func(row *pipeline.Task) {
				row.ReadyAt, row.DueAt = w.clock.Now(), w.clock.Now().Add(w.policy.RenewEvery)
			})
			if _, err := w.inner.PutTasks(w.ctx, []pipeline.Task{row}); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// Whoever polls reaps too: fifty of them meet on the same rows.
func TestFiftyReapersAreNotInEachOthersWay(t *testing.T) {
	jobs, reapers := size(100, 20), size(50, 50)
	in(t, 0, func(w *world) {
		random := rand.New(rand.NewPCG(1, 1))
		w.waiting(jobs, 30)
		for i := range reapers {
			phase := time.Duration(random.Int64N(int64(w.policy.RenewEvery)))
			w.start(fmt.Sprintf("workd-%03d", i), wiring.Config{}, func(s *wiring.System) {
				if w.clock.Sleep(w.ctx, phase) == nil {
					s.Reaper.Run(w.ctx, w.policy.RenewEvery)
				}
			})
		}
		time.Sleep(50 * time.Second) // the second ring is a minute after the first
		w.end()
		rung := 0
		for n := range jobs {
			rows, err := pipeline.AllTasks(t.Context(), w.inner, pipeline.JobID(fmt.Sprintf("job-%03d", n)))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				rung += row.Rings
			}
		}
		w.figures(rung, "rings")
		if w.meter.total.writes > 6*float64(rung) {
			t.Errorf("%.0f write units for %d rings: reapers try what others have done", w.meter.total.writes, rung)
		}
		if rung != jobs*30 {
			t.Errorf("%d of %d rows were rung once", rung, jobs*30)
		}
	})
}
