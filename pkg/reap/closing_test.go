package reap_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/reap"
)

func TestClosing(t *testing.T) {
	rows := func(b *bench) {
		b.row(0)
		b.row(1, func(r *pipeline.Task) { r.Status = pipeline.TaskParked })
		b.row(2, func(r *pipeline.Task) { r.ReadyAt, r.DueAt = r.ReadyAt.Add(10*time.Hour), r.DueAt.Add(10*time.Hour) })
		b.row(3, func(r *pipeline.Task) { r.Accepted = r.Stages })
		b.put(pipelinetest.NewRow(theJob, "finalize#1", func(r *pipeline.Task) { r.DueAt = r.DueAt.Add(time.Hour) }))
	}
	check := func(b *bench, why string) {
		b.Helper()
		for n := range 3 {
			row := b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}, pipeline.TaskCancelled)
			if !strings.Contains(row.Reason.Cause, why) {
				b.Errorf("got the reason %s, want %q", row.Reason, why)
			}
			item, err := b.store.Item(b.ctx, theJob, pipeline.CancellationKey(row.ID))
			b.must(err)
			if c, err := pipeline.Decode[pipeline.Cancellation](item, "c"); err != nil || c.Label != "cancelled-at-stage-1" {
				b.Errorf("got %+v, %v, want cancelled-at-stage-1", c, err)
			}
		}
		b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(3)}, pipeline.TaskDone)
		b.status(pipeline.Ref{Job: theJob, ID: "finalize#1"}, pipeline.TaskPending)
		if b.finalized == 0 {
			b.Error("nobody asked whether the job is over")
		}
	}
	in(t, "a cancelled job's rows are ended, whatever their time, and finalize is not", func(b *bench) {
		rows(b)
		b.job(pipeline.JobCancelling, func(j *pipeline.Job) { j.Reason = pipeline.Fail(pipeline.Cancelled, "enough") })
		b.sweep(time.Second)
		check(b, "enough")
	})
	in(t, "so are those of a job past its deadline", func(b *bench) {
		rows(b)
		b.job(pipeline.JobRunning, func(j *pipeline.Job) { j.Deadline = b.clock.Now() })
		b.sweep(time.Second)
		check(b, "deadline")
	})
	in(t, "and those that are born late", func(b *bench) {
		rows(b)
		b.job(pipeline.JobCancelling, func(j *pipeline.Job) { j.Reason = pipeline.Fail(pipeline.Cancelled, "enough") })
		b.sweep(time.Second)
		late := b.row(9)
		b.sweep(b.policy.RenewEvery)
		b.status(late.Ref, pipeline.TaskCancelled)
	})
	in(t, "and those of a dead worker, once its claim lapsed", func(b *bench) {
		b.claimed(b.row(0), "dead")
		b.job(pipeline.JobCancelling)
		b.sweep(time.Second)
		b.status(chunk0, pipeline.TaskClaimed)
		b.every(time.Second, 40*time.Second)
		b.status(chunk0, pipeline.TaskCancelled)
	})
	in(t, "a claimed row is its worker's to end", func(b *bench) {
		b.claimed(b.row(0), "alive")
		b.job(pipeline.JobCancelling)
		b.every(time.Second, 10*time.Second)
		b.status(chunk0, pipeline.TaskClaimed)
	})
	in(t, "rows of an ended job, and of none, are ended", func(b *bench) {
		b.row(0)
		orphan := b.put(pipelinetest.NewRow("feedfeedfe-1", pipeline.WorkTask(0)))
		b.job(pipeline.JobFailed)
		b.openErr = fmt.Errorf("job: %w", pipeline.ErrNotFound)
		b.sweep(2 * time.Minute)
		b.status(chunk0, pipeline.TaskCancelled)
		b.status(orphan.Ref, pipeline.TaskCancelled)
	})
	in(t, "rows whose split was given up are ended", func(b *bench) {
		b.store.DeleteTask(pipeline.Ref{Job: theJob, ID: pipeline.SplitTask})
		b.put(pipelinetest.NewRow(theJob, pipeline.SplitTask, func(r *pipeline.Task) { r.Status, r.Buried = pipeline.TaskAbandoned, true }))
		b.row(0)
		b.sweep(2 * time.Minute)
		b.status(chunk0, pipeline.TaskCancelled)
	})
	in(t, "parked rows go on when the job runs, and are left while it is paused", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.Status = pipeline.TaskParked })
		b.job(pipeline.JobPaused)
		for range 60 {
			b.count("refused writes", b.sweep(time.Minute)["moved meanwhile"], 0)
		}
		b.status(chunk0, pipeline.TaskParked)
		b.count("bells", len(b.bells(b.work)), 0)
		b.job(pipeline.JobRunning)
		b.every(time.Minute, 15*time.Minute)
		b.status(chunk0, pipeline.TaskPending)
		if len(b.bells(b.work)) == 0 {
			b.Error("no bell")
		}
	})
	in(t, "a parked row whose job began to run during the sweep is not put off", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.Status = pipeline.TaskParked })
		b.job(pipeline.JobPlanned)
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			err := do(ctx)
			if op.Name == "Task" { // the sweep has just read the job as planned
				b.job(pipeline.JobRunning)
			}
			return err
		})
		b.Reaper = reap.New(b.cfg)
		b.sweep(time.Minute)
		b.sweep(time.Second)
		b.status(chunk0, pipeline.TaskPending)
	})
	in(t, "a paused job's deadline does not end its rows", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.Status = pipeline.TaskParked })
		b.job(pipeline.JobPaused)
		b.every(time.Hour, 30*time.Hour)
		b.status(chunk0, pipeline.TaskParked)
	})
	in(t, "a row that was redriven while the sweep knew its job as ended goes on", func(b *bench) {
		// Two rows in the same shard: the first makes the sweep read the job, then the job is redriven.
		first, second, third := sameShard()
		b.put(pipelinetest.NewRow(theJob, third))
		b.put(pipelinetest.NewRow(theJob, first, func(r *pipeline.Task) { r.DueAt-- }))
		abandoned := b.put(pipelinetest.NewRow(theJob, second, func(r *pipeline.Task) { r.Status, r.Buried = pipeline.TaskAbandoned, true }))
		b.job(pipeline.JobPartial)
		redriven := false
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			err := do(ctx)
			if op.Name == "Close" && !redriven {
				redriven = true
				job, _ := b.store.Job(b.ctx, theJob)
				reopened := job
				reopened.Status, reopened.Epoch = pipeline.JobRunning, job.Epoch+1
				_, _, err := b.store.Redrive(b.ctx, pipeline.RedriveWrite{Task: abandoned, Job: job, Reopened: reopened, MaxTries: 240, Now: b.clock.Now()})
				b.must(err)
			}
			return err
		})
		b.store.PageBytes = 1 // a row a page: the redriven one is read later
		r := reap.New(b.cfg)
		b.clock.Advance(2 * time.Minute)
		_, err := r.Sweep(b.ctx)
		b.must(err)
		if !redriven {
			b.Fatal("the first row was not ended")
		}
		b.status(abandoned.Ref, pipeline.TaskPending)
	})
}

// sameShard is three work tasks whose rows are in one shard.
func sameShard() (first, second, third pipeline.TaskID) {
	var ids []pipeline.TaskID
	for n := 0; len(ids) < 3; n++ {
		if ref := (pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}); ref.DueShard() == chunk0.DueShard() {
			ids = append(ids, ref.ID)
		}
	}
	return ids[0], ids[1], ids[2]
}

func TestNets(t *testing.T) {
	in(t, "a job whose last end was followed by a crash is asked about", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.Status = pipeline.TaskDone })
		b.sweep(time.Second)
		b.count("asked", b.finalized, 1)
		b.every(time.Second, 4*time.Second)
		b.count("asked again soon", b.finalized, 1)
		b.every(time.Second, time.Minute)
		if b.finalized < 10 || b.finalized > 14 {
			b.Errorf("asked %d times in a minute, want every RenewEvery", b.finalized)
		}
	})
	in(t, "an ended job is not asked about", func(b *bench) {
		b.job(pipeline.JobCompleted)
		b.every(time.Second, time.Minute)
		b.count("asked", b.finalized, 0)
	})
	in(t, "an abandoned row without its dead letter gets it, once", func(b *bench) {
		b.row(0, func(r *pipeline.Task) {
			r.Status, r.Reason = pipeline.TaskAbandoned, pipeline.Fail(pipeline.Invalid, "no use")
		})
		b.every(time.Minute, 10*time.Minute)
		letters := b.letters(b.work)
		if len(letters) != 1 || letters[0].Reason.Cause != "no use" || letters[0].Task != chunk0.ID {
			b.Errorf("got the dead letters %+v, want one with the reason", letters)
		}
		if !b.read(chunk0).Buried {
			b.Error("the row is not marked")
		}
	})
	in(t, "what an attempt left reserved that has ended is settled, as spent; what is held stays", func(b *bench) {
		b.must(b.store.OpenBudget(b.ctx, theJob, 1000))
		b.row(0, func(r *pipeline.Task) { r.Generation = 2 })
		b.row(1, func(r *pipeline.Task) { r.Status, r.Generation = pipeline.TaskDone, 1 })
		held := b.claimed(b.row(2, func(r *pipeline.Task) { r.Generation = 4 }), "alive")
		for _, r := range []pipeline.Reservation{
			{Task: pipeline.WorkTask(0), Generation: 2, Amount: 1},
			{Task: pipeline.WorkTask(1), Generation: 1, Amount: 2},
			{Task: pipeline.WorkTask(2), Generation: 4, Amount: 4},
			{Task: pipeline.WorkTask(2), Generation: held.Generation, Amount: 8},
			{Task: pipeline.WorkTask(9), Generation: 1, Amount: 16},
		} {
			_, err := b.store.Reserve(b.ctx, theJob, r)
			b.must(err)
		}
		b.sweep(time.Second)
		budget, err := b.store.Budget(b.ctx, theJob)
		b.must(err)
		if budget.Spent != 1+2+4+16 || len(budget.Open) != 1 || budget.Open[0].Amount != 8 {
			b.Errorf("got %+v, want all but the held 8 spent", budget)
		}
	})
	in(t, "a row that errors is put off, longer each time, and does not stop the sweep", func(b *bench) {
		b.row(0)
		b.row(1)
		b.put(pipelinetest.NewRow("bad-1", pipeline.WorkTask(0)))
		_, _, err := b.store.Submit(b.ctx, pipelinetest.NewJob("bad-1"), pipelinetest.NewRow("bad-1", pipeline.SplitTask, func(r *pipeline.Task) { r.Status = pipeline.TaskDone }))
		b.must(err)
		errs := 0
		var at []pipeline.Instant
		for range 180 {
			b.clock.Advance(time.Minute)
			report, err := b.Sweep(b.ctx)
			if err != nil {
				errs++
			}
			if report["errors"] > 0 {
				at = append(at, b.clock.Now())
			}
		}
		if len(at) < 5 || len(at) > 18 {
			b.Errorf("it was tried %d times in three hours, want less and less often", len(at))
		}
		if n := len(b.bells(b.work)); n < 10 {
			b.Errorf("got %d bells for the good rows", n)
		}
	}, func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Task" && op.On == "bad-1/split" {
				return errors.New("no such shelf")
			}
			return do(ctx)
		})
	})
	in(t, "a row of a newer version is told and left alone; the others are moved on", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.Format = pipeline.FormatVersion + 1 })
		b.row(1)
		before := b.read(chunk0)
		report := b.sweep(2 * time.Minute)
		b.count("rows that could not be moved", report["errors"], 1)
		b.count("rung", report["rung"], 1)
		after := b.read(chunk0)
		after.DueAt = before.DueAt // a store of its own format refuses that too
		if !reflect.DeepEqual(after, before) {
			b.Errorf("got %+v, want %+v", after, before)
		}
	})
	in(t, "a sweep is bounded in time and goes on where it stopped", func(b *bench) {
		b.store.PageBytes = 1
		for n := range 60 {
			b.row(n)
		}
		rung := map[pipeline.TaskID]bool{}
		sweeps := 0
		b.clock.Advance(2 * time.Minute)
		for len(rung) < 60 && sweeps < 40 {
			sweeps++
			before := b.clock.Mono()
			_, err := b.Sweep(b.ctx)
			b.must(err)
			if took := b.clock.Mono() - before; took > 8*time.Second {
				b.Errorf("sweep %d took %v", sweeps, took)
			}
			for _, m := range b.bells(b.work) {
				rung[m.Task] = true
			}
		}
		b.count("rung", len(rung), 60)
		if sweeps < 3 {
			b.Errorf("got %d sweeps, want the time to have run out in some", sweeps)
		}
	}, func(b *bench) {
		b.cfg.Within = 5 * time.Second
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Ring" {
				b.clock.Advance(250 * time.Millisecond)
			}
			return do(ctx)
		})
	})
	const rows = 15 * pipeline.DueShards
	in(t, "so it is within a page, whatever time it is given", func(b *bench) { // many rows in each shard
		for n := range rows {
			b.row(n, func(r *pipeline.Task) { r.DueAt = r.DueAt.Add(time.Duration(n) * time.Second) })
		}
		b.clock.Advance(10 * time.Minute)
		for sweep := range 300 {
			before := b.clock.Mono()
			_, err := b.SweepWithin(b.ctx, 5*time.Second)
			b.must(err)
			if took := b.clock.Mono() - before; took > 7*time.Second {
				b.Errorf("sweep %d took %v", sweep, took)
			}
		}
		for n := range rows {
			if row := b.read(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}); (row.Ring > 0) != (n >= rows/2) {
				b.Errorf("chunk %d has ring %d: want those rung that can be", n, row.Ring)
			}
		}
	}, func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Ring" || op.Name == "Postpone" {
				b.clock.Advance(250 * time.Millisecond)
				if op.On < (pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(rows / 2)}).String() {
					return pipelinetest.ErrLost
				}
			}
			return do(ctx)
		})
	})
	in(t, "more open jobs than a sweep has time for: each has its turn", func(b *bench) {
		for n := range 40 {
			id := pipeline.JobID(fmt.Sprintf("open-%02d", n))
			_, _, err := b.store.Submit(b.ctx, pipelinetest.NewJob(id), pipelinetest.NewRow(id, pipeline.SplitTask, func(r *pipeline.Task) { r.Status = pipeline.TaskDone }))
			b.must(err)
		}
		for range 20 {
			b.clock.Advance(time.Minute)
			before := b.clock.Mono()
			_, err := b.SweepWithin(b.ctx, 5*time.Second)
			b.must(err)
			if took := b.clock.Mono() - before; took > 6*time.Second {
				b.Errorf("a sweep took %v", took)
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.looked) != 41 {
			b.Errorf("got %d jobs looked at, want all 41", len(b.looked))
		}
	}, func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Budget" {
				b.clock.Advance(500 * time.Millisecond)
			}
			return do(ctx)
		})
	})
	in(t, "rows in front that can neither be moved nor put off do not keep a sweep from those behind", func(b *bench) {
		b.store.PageBytes = 1
		for n := range 60 {
			b.row(n, func(r *pipeline.Task) { r.DueAt = r.DueAt.Add(time.Duration(n) * time.Second) })
		}
		b.clock.Advance(10 * time.Minute)
		for range 20 {
			_, err := b.Sweep(b.ctx)
			b.must(err)
		}
		rung := map[pipeline.TaskID]bool{}
		for _, m := range b.bells(b.work) {
			rung[m.Task] = true
		}
		b.count("rung", len(rung), 30)
	}, func(b *bench) {
		b.cfg.Within = 5 * time.Second
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Ring" || op.Name == "Postpone" {
				b.clock.Advance(250 * time.Millisecond)
				if op.On < (pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(30)}).String() {
					return pipelinetest.ErrLost
				}
			}
			return do(ctx)
		})
	})
}
