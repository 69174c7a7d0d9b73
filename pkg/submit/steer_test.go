package submit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
)

// planned is a held job whose split is done: three parked chunks.
func planned(b *bench, edits ...func(*submit.Submission)) pipeline.Job {
	b.Helper()
	sub := submission()
	sub.Hold = true
	for _, edit := range edits {
		edit(&sub)
	}
	job, _ := b.submit(sub)
	b.split(job, strings.Repeat("The cap is ten. ", 20)+strings.Repeat("Notice is due. ", 20)+strings.Repeat("Law is English. ", 20), 3, pipeline.TaskParked)
	return job
}

func TestStart(t *testing.T) {
	t.Run("a planned job runs with its budget open, and its rows are rung", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		b.clock.Advance(time.Hour)
		plan, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		started, err := b.Start(t.Context(), job.ID)
		b.must(err)
		if want := b.clock.Now().Add(24 * time.Hour); started.Status != pipeline.JobRunning || started.Deadline != want {
			t.Errorf("got %s until %s, want running until %s", started.Status, started.Deadline, want)
		}
		budget, err := b.store.Budget(t.Context(), job.ID)
		b.must(err)
		if budget.Ceiling != plan.Worst {
			t.Errorf("got ceiling %s, want the worst case %s", budget.Ceiling, plan.Worst)
		}
		for id, row := range b.rows(job.ID) {
			if id.Kind() == pipeline.TaskWork && row.Status != pipeline.TaskPending {
				t.Errorf("%s is %s, want pending", id, row.Status)
			}
		}
		if got := b.depth(b.work); got != 3 {
			t.Errorf("got %d bells, want 3", got)
		}
	})
	t.Run("a ceiling that was asked for is the budget", func(t *testing.T) {
		b := newBench(t)
		job := planned(b, func(s *submit.Submission) { s.MaxCost = pipeline.Dollar / 100 })
		_, err := b.Start(t.Context(), job.ID)
		b.must(err)
		if budget, _ := b.store.Budget(t.Context(), job.ID); budget.Ceiling != pipeline.Dollar/100 {
			t.Errorf("got ceiling %s, want $0.01", budget.Ceiling)
		}
	})
	t.Run("a job that is not split cannot be started, and stays planned", func(t *testing.T) {
		b := newBench(t)
		sub := submission()
		sub.Hold = true
		job, _ := b.submit(sub)
		if _, err := b.Start(t.Context(), job.ID); !errors.Is(err, submit.ErrNotSplit) {
			t.Errorf("got %v, want ErrNotSplit", err)
		}
		if job, _ := b.store.Job(t.Context(), job.ID); job.Status != pipeline.JobPlanned {
			t.Errorf("got %s, want planned", job.Status)
		}
	})
	t.Run("a start that stopped half way is finished by the next", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		b.setStatus(job.ID, pipeline.JobRunning)
		_, err := b.Start(t.Context(), job.ID)
		b.must(err)
		if got := b.depth(b.work); got != 3 {
			t.Errorf("got %d bells, want 3", got)
		}
	})
	t.Run("a start whose answer was lost is recognised", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		cfg := b.cfg
		cfg.Store = pipelinetest.Lossy(b.store, 1, "SetJob")
		if started, err := submit.New(cfg).Start(t.Context(), job.ID); err != nil || started.Status != pipeline.JobRunning {
			t.Errorf("got %s, %v; want running", started.Status, err)
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Run("the time of a pause is no time towards the deadline", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		started, err := b.Start(t.Context(), job.ID)
		b.must(err)
		_, err = b.Pause(t.Context(), job.ID)
		b.must(err)
		b.clock.Advance(3 * time.Hour)
		_, err = b.Pause(t.Context(), job.ID)
		b.must(err)
		resumed, err := b.Resume(t.Context(), job.ID)
		b.must(err)
		if want := started.Deadline.Add(3 * time.Hour); resumed.Deadline != want {
			t.Errorf("got deadline %s, want %s", resumed.Deadline, want)
		}
		again, err := b.Resume(t.Context(), job.ID)
		b.must(err)
		if again.Deadline != resumed.Deadline {
			t.Errorf("a second resume moved the deadline to %s", again.Deadline)
		}
	})
	t.Run("what does not fit the job's status is refused, and says how it stands", func(t *testing.T) {
		for status, ops := range map[pipeline.JobStatus][]string{
			pipeline.JobPlanned:    {"pause", "resume"},
			pipeline.JobPaused:     {"start"},
			pipeline.JobCancelling: {"start", "pause", "resume"},
			pipeline.JobCancelled:  {"start", "pause", "resume"},
			pipeline.JobCompleted:  {"start", "pause", "resume", "cancel"},
			pipeline.JobPartial:    {"start", "pause", "resume", "cancel"},
			pipeline.JobFailed:     {"start", "pause", "resume", "cancel"},
		} {
			b := newBench(t)
			job, _ := b.submit(submission())
			b.setStatus(job.ID, status)
			do := map[string]func(context.Context, pipeline.JobID) (pipeline.Job, error){
				"start": b.Start, "pause": b.Pause, "resume": b.Resume,
				"cancel": func(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) { return b.Cancel(ctx, id, "") },
			}
			for _, op := range ops {
				_, err := do[op](t.Context(), job.ID)
				if !errors.Is(err, submit.ErrStands) || !strings.Contains(err.Error(), string(status)) {
					t.Errorf("%s a %s job: got %v, want a refusal that names the status", op, status, err)
				}
			}
		}
	})
}

func TestCancel(t *testing.T) {
	t.Run("rows that nobody holds end with the stage at which they stopped", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		_, err := b.Start(t.Context(), job.ID)
		b.must(err)
		row := b.rows(job.ID)[pipeline.WorkTask(0)]
		claimed, err := b.store.Claim(t.Context(), pipelinetest.ClaimOf(row, "w", b.clock.Now()))
		b.must(err)
		cancelled, err := b.Cancel(t.Context(), job.ID, "wrong draft")
		b.must(err)
		if cancelled.Status != pipeline.JobCancelling || cancelled.Reason.Cause != "wrong draft" {
			t.Errorf("got %s because of %q", cancelled.Status, cancelled.Reason.Cause)
		}
		rows := b.rows(job.ID)
		if got := rows[claimed.ID].Status; got != pipeline.TaskClaimed {
			t.Errorf("the row that a worker holds is %s, want claimed", got)
		}
		for n := 1; n < 3; n++ {
			id := pipeline.WorkTask(n)
			if rows[id].Status != pipeline.TaskCancelled || rows[id].Reason.Cause != "wrong draft" {
				t.Errorf("%s is %s because of %q, want cancelled with the reason", id, rows[id].Status, rows[id].Reason.Cause)
			}
			body, err := b.store.Item(t.Context(), job.ID, pipeline.CancellationKey(id))
			b.must(err)
			if c, _ := pipeline.Decode[pipeline.Cancellation](body, ""); c.Label != "cancelled-at-stage-1" {
				t.Errorf("%s: got %q, want cancelled-at-stage-1", id, c.Label)
			}
		}
	})
	t.Run("finished work is done, not cancelled", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		b.must(b.store.PutRaw(pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(1)}, map[string]any{"status": "pending", "stages": 2, "accepted": 2, "bodies": []int{1, 1}}))
		_, err := b.Cancel(t.Context(), job.ID, "")
		b.must(err)
		if got := b.rows(job.ID)[pipeline.WorkTask(1)].Status; got != pipeline.TaskDone {
			t.Errorf("got %s, want done", got)
		}
	})
	t.Run("cancelling before the split ends it, and cancelling again is no error", func(t *testing.T) {
		opened := 0
		b := newBench(t, func(c *submit.Config) { c.Opener = counting{&opened} })
		job, _ := b.submit(submission())
		for range 2 {
			_, err := b.Cancel(t.Context(), job.ID, "")
			b.must(err)
		}
		if got := b.rows(job.ID)[pipeline.SplitTask].Status; got != pipeline.TaskCancelled {
			t.Errorf("got split %s, want cancelled", got)
		}
		if opened != 2 {
			t.Errorf("the finalize was looked for %d times, want 2", opened)
		}
		b.setStatus(job.ID, pipeline.JobCancelled)
		if _, err := b.Cancel(t.Context(), job.ID, ""); err != nil {
			t.Errorf("cancel of a cancelled job: %v", err)
		}
	})
	t.Run("a worker's own record of the stage is kept", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		key := pipeline.CancellationKey(pipeline.WorkTask(0))
		b.must(b.store.PutItem(t.Context(), job.ID, key, pipeline.Encode(pipeline.Cancellation{Label: "cancelled-at-stage-2"})))
		_, err := b.Cancel(t.Context(), job.ID, "")
		b.must(err)
		body, _ := b.store.Item(t.Context(), job.ID, key)
		if c, _ := pipeline.Decode[pipeline.Cancellation](body, ""); c.Label != "cancelled-at-stage-2" {
			t.Errorf("got %q, want the worker's", c.Label)
		}
	})
}

type counting struct{ n *int }

func (c counting) MaybeFinalize(context.Context, pipeline.JobID) error {
	*c.n++
	return nil
}
