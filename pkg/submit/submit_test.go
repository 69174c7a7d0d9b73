package submit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
)

func TestSubmit(t *testing.T) {
	t.Run("a submission becomes a job with its split, and rings it", func(t *testing.T) {
		b := newBench(t)
		job, stood := b.submit(submission())
		if stood || job.Status != pipeline.JobRunning || job.Run != 1 || job.Epoch != 1 {
			t.Fatalf("got stood %v, status %s, run %d, epoch %d; want a new running job", stood, job.Status, job.Run, job.Epoch)
		}
		split := b.rows(job.ID)[pipeline.SplitTask]
		if split.Status != pipeline.TaskPending || split.DueAt == 0 {
			t.Errorf("got split %s due at %s, want pending and due", split.Status, split.DueAt)
		}
		if got := b.depth(b.control); got != 1 {
			t.Errorf("got %d messages on the control queue, want 1", got)
		}
		for _, key := range []string{pipeline.SourceKey(job.Source), job.Fingerprint} {
			if _, err := b.store.Blob(t.Context(), key); err != nil {
				t.Errorf("blob %s: %v", key, err)
			}
		}
	})
	t.Run("a held submission stays planned", func(t *testing.T) {
		b := newBench(t)
		sub := submission()
		sub.Hold = true
		if job, _ := b.submit(sub); job.Status != pipeline.JobPlanned || job.Deadline == 0 {
			t.Errorf("got %s with deadline %s, want planned with a deadline", job.Status, job.Deadline)
		}
	})
	t.Run("an equal submission is the same job however it stands", func(t *testing.T) {
		for _, status := range []pipeline.JobStatus{pipeline.JobRunning, pipeline.JobPaused, pipeline.JobCancelling, pipeline.JobCompleted, pipeline.JobPartial} {
			b := newBench(t)
			first, _ := b.submit(submission())
			b.setStatus(first.ID, status)
			second, stood := b.submit(submission())
			if !stood || second.ID != first.ID || second.Status != status {
				t.Errorf("%s: got job %s (stood %v, %s), want %s as it stands", status, second.ID, stood, second.Status, first.ID)
			}
		}
	})
	t.Run("one that was cancelled or failed starts anew", func(t *testing.T) {
		for _, status := range []pipeline.JobStatus{pipeline.JobCancelled, pipeline.JobFailed} {
			b := newBench(t)
			first, _ := b.submit(submission())
			b.setStatus(first.ID, status)
			second, stood := b.submit(submission())
			if stood || second.Run != 2 || second.ID == first.ID {
				t.Errorf("%s: got run %d (stood %v), want a new run 2", status, second.Run, stood)
			}
			if second.Sample != first.Sample {
				t.Errorf("%s: got sample %d, want %d: the replies are kept", status, second.Sample, first.Sample)
			}
		}
	})
	t.Run("a fresh run follows a completed one and shares no replies", func(t *testing.T) {
		b := newBench(t)
		first, _ := b.submit(submission())
		b.setStatus(first.ID, pipeline.JobCompleted)
		sub := submission()
		sub.Fresh = true
		second, stood := b.submit(sub)
		if stood || second.Run != 2 || second.Sample == first.Sample {
			t.Fatalf("got run %d, sample %d (stood %v), want a new run 2 with a sample of its own", second.Run, second.Sample, stood)
		}
		if third, stood := b.submit(sub); !stood || third.ID != second.ID {
			t.Errorf("got %s (stood %v), want the fresh run that has not ended", third.ID, stood)
		}
		b.setStatus(second.ID, pipeline.JobCompleted)
		if third, _ := b.submit(sub); third.Run != 3 || third.Sample == second.Sample {
			t.Errorf("got run %d with sample %d, want run 3 with another sample than %d", third.Run, third.Sample, second.Sample)
		}
	})
	t.Run("a first fresh run shares no replies with another document's", func(t *testing.T) {
		b := newBench(t)
		sub := submission()
		sub.Fresh = true
		first, _ := b.submit(sub)
		sub.Source = []byte("The cap is eleven.")
		second, _ := b.submit(sub)
		if first.Sample == 0 || first.Sample == second.Sample {
			t.Errorf("got samples %d and %d, want two of their own", first.Sample, second.Sample)
		}
	})
	t.Run("two submits at once give one run", func(t *testing.T) {
		b := newBench(t)
		ids, created := make([]pipeline.JobID, 16), make([]bool, 16)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				job, stood, err := b.Submit(context.Background(), submission())
				if err != nil {
					t.Error(err)
				}
				ids[i], created[i] = job.ID, !stood
			})
		}
		group.Wait()
		n := 0
		for i := range ids {
			if ids[i] != ids[0] {
				t.Errorf("got jobs %s and %s, want one", ids[0], ids[i])
			}
			if created[i] {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of the submits were told that the job is theirs, want 1", n)
		}
	})
	t.Run("a lost bell is no error, for the row is due", func(t *testing.T) {
		b := newBench(t, func(c *submit.Config) {
			c.Queues.Control = pipelinetest.WrapQueue(c.Queues.Control, func(context.Context, pipelinetest.Op, func(context.Context) error) error {
				return errors.New("the queue is down")
			})
		})
		job, _ := b.submit(submission())
		if b.rows(job.ID)[pipeline.SplitTask].DueAt == 0 {
			t.Error("the split is not due: nobody will ring it")
		}
	})
	t.Run("bad input is refused before anything is written", func(t *testing.T) {
		for want, edit := range map[string]func(*submit.Submission){
			"empty":          func(s *submit.Submission) { s.Source = nil },
			"no model":       func(s *submit.Submission) { s.Model = pipeline.ModelInfo{} },
			"allows nothing": func(s *submit.Submission) { s.MaxCost = -1 },
			"at least one":   func(s *submit.Submission) { s.Definition.Stages = nil },
		} {
			b := newBench(t)
			sub := submission()
			edit(&sub)
			_, _, err := b.Submit(t.Context(), sub)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one that says %q", err, want)
			}
			if jobs, _, _ := b.store.Jobs(t.Context(), "tenant", "", 10); len(jobs) != 0 {
				t.Errorf("%s: a job was left behind", want)
			}
		}
	})
}
