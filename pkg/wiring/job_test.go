package wiring_test

import (
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

const chunks = 4

func TestJob(t *testing.T) {
	t.Run("completes with every cell asked once", func(t *testing.T) {
		in(t, func(w *world) {
			w.start("worker", nil)
			job := w.submit(text(chunks))
			w.ends(job.ID, time.Minute, pipeline.JobCompleted)
			r := w.complete(job.ID, chunks)
			asked, keys, _ := w.model.count()
			if asked != chunks*6 || keys != chunks*6 || r.Spend.Tries != chunks*6 {
				t.Errorf("got %d asks of %d keys, %d tries in the result, want %d of each", asked, keys, r.Spend.Tries, chunks*6)
			}
		})
	})
}
