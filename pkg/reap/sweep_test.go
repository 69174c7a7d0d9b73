package reap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/reap"
)

func TestExpiry(t *testing.T) {
	p := pipeline.DefaultPolicy()
	in(t, "a claim that lapsed by more than MaxSkew is taken, and rung at once", func(b *bench) {
		b.claimed(b.row(0), "dead")
		b.sweep(p.ClaimTTL + p.MaxSkew)
		b.status(chunk0, pipeline.TaskClaimed)
		b.count("records", len(b.records(chunk0)), 0)
		report := b.sweep(time.Millisecond)
		row := b.status(chunk0, pipeline.TaskPending)
		b.count("expired", report["expired"], 1)
		b.count("attempts", row.Attempts, 1)
		b.count("losses", row.Losses, 1)
		if bells := b.bells(b.work); len(bells) != 1 || bells[0].Ring != row.Ring || bells[0].Generation != 1 {
			b.Errorf("got the bells %+v, want one for ring %d of generation 1", bells, row.Ring)
		}
		records := b.records(chunk0)
		if len(records) != 1 || records[0].Ender != pipeline.ExpiredBy || records[0].Failure.Kind != pipeline.Lost || records[0].Worker != "dead" || records[0].Stage != 1 {
			b.Errorf("got the records %+v, want one that says who was lost where", records)
		}
	})
	in(t, "a live claim is looked at again only when it may have lapsed", func(b *bench) {
		row := b.claimed(b.row(0), "alive")
		for range 100 {
			b.sweep(5 * time.Second)
			row, err := b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: b.clock.Now().Add(p.ClaimTTL)})
			b.must(err)
			if row.Generation != 1 || row.Attempts != 1 {
				b.Fatalf("got generation %d, attempts %d", row.Generation, row.Attempts)
			}
		}
		b.count("records", len(b.records(chunk0)), 0)
		b.count("bells", len(b.bells(b.work)), 0)
	})
	in(t, "a healthy attempt of 40 minutes and a dead one, three reapers at once, an hour: one bell per expiry", func(b *bench) {
		healthy := b.claimed(b.row(1), "alive")
		b.claimed(b.row(0), "dead")
		reapers := []*reap.Reaper{b.Reaper, reap.New(b.cfg), reap.New(b.cfg)}
		bells := 0
		for minute := range 60 {
			for range 12 {
				b.clock.Advance(5 * time.Second)
				if minute < 40 {
					_, err := b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: healthy}.Fence(), Expires: b.clock.Now().Add(p.ClaimTTL)})
					b.must(err)
				}
			}
			if minute == 40 {
				_, err := b.store.End(b.ctx, pipelinetest.EndOf(healthy, pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, b.clock.Now()))
				b.must(err)
			}
			var group pipeline.Group
			for _, r := range reapers {
				group.Go(func() {
					if _, err := r.Sweep(b.ctx); err != nil {
						b.Error(err)
					}
				})
			}
			group.Wait()
			messages := b.bells(b.work)
			bells += len(messages)
			if len(messages) > 1 {
				b.Errorf("minute %d: got %d bells, want at most one", minute, len(messages))
			}
			if minute == 0 {
				b.count("bells after the expiry", len(messages), 1)
			}
		}
		if row := b.read(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(1)}); row.Generation != 1 || row.Attempts != 0 && row.Attempts != 1 || row.Losses != 0 {
			b.Errorf("got the healthy row at generation %d with %d losses", row.Generation, row.Losses)
		}
		if row := b.read(chunk0); row.Losses != 1 || bells < 3 || bells > 10 {
			b.Errorf("got %d losses and %d bells in an hour, want 1 and a few", row.Losses, bells)
		}
	})
	in(t, "the worker's process has exited: taken at once, others' claims are left", func(b *bench) {
		for n := range 10 {
			b.claimed(b.row(n), map[bool]string{true: "dead", false: "alive"}[n%2 == 0])
		}
		n, err := b.Exited(b.ctx, "dead")
		b.must(err)
		b.count("taken", n, 5)
		for n := range 10 {
			b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(n)}, map[bool]pipeline.TaskStatus{true: pipeline.TaskPending, false: pipeline.TaskClaimed}[n%2 == 0])
		}
		b.count("bells", len(b.bells(b.work)), 5)
	})
	in(t, "lost with new answers: a deferral, twice; the third counts", func(b *bench) {
		row := b.row(0)
		for n := 1; n <= 3; n++ {
			row = b.read(chunk0)
			write := pipelinetest.ClaimOf(row, "dead", b.clock.Now())
			write.Alone = true
			claimed, err := b.store.Claim(b.ctx, write)
			b.must(err)
			_, err = b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: claimed}.Fence(), Expires: claimed.ExpiresAt + 1, Answers: 5})
			b.must(err)
			b.sweep(p.ClaimTTL + p.MaxSkew + 2*time.Millisecond)
			row = b.status(chunk0, pipeline.TaskPending)
			b.count("losses", row.Losses, n)
			b.count("attempts", row.Attempts, map[bool]int{false: 0, true: 1}[n == 3])
		}
	})
	in(t, "at the cap: abandoned, with a reason for each attempt, a dead letter, and the job is asked about", func(b *bench) {
		b.row(0)
		for range 3 {
			write := pipelinetest.ClaimOf(b.read(chunk0), "dead", b.clock.Now())
			write.Alone = true
			_, err := b.store.Claim(b.ctx, write)
			b.must(err)
			b.sweep(p.ClaimTTL + p.MaxSkew + time.Millisecond)
		}
		row := b.status(chunk0, pipeline.TaskAbandoned)
		if !row.Buried {
			b.Error("the dead letter is not marked")
		}
		letters := b.letters(b.work)
		if len(letters) != 1 || len(letters[0].Context) != 3 || letters[0].Reason.Kind != pipeline.Lost {
			b.Fatalf("got the dead letters %+v, want one with three records", letters)
		}
		if b.finalized == 0 {
			b.Error("nobody asked whether the job is over")
		}
	})
	in(t, "all stages accepted: done, however its worker ended", func(b *bench) {
		b.claimed(b.row(0, func(r *pipeline.Task) { r.Accepted = r.Stages }), "dead")
		b.sweep(time.Minute)
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "what the lost attempt had reserved counts as spent; what it was allowed counts as sent", func(b *bench) {
		b.must(b.store.OpenBudget(b.ctx, theJob, 1000))
		claimed := b.claimed(b.row(0), "dead")
		_, err := b.store.Reserve(b.ctx, theJob, pipeline.Reservation{Task: chunk0.ID, Generation: 1, Stage: 1, Amount: 300})
		b.must(err)
		_, err = b.store.Reserve(b.ctx, theJob, pipeline.Reservation{Task: pipeline.WorkTask(7), Generation: 1, Stage: 1, Amount: 100})
		b.must(err)
		other := b.row(7)
		b.clock.Advance(time.Minute)
		b.claimed(other, "alive")
		_, err = b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: claimed}.Fence(), Expires: claimed.ExpiresAt + 1, Allowed: 12})
		b.must(err)
		journal := pipeline.Journal{Task: chunk0.ID, Generation: 1, Tries: []pipeline.Try{{Call: "a", Cost: 5}, {Call: "b", Cost: 6}, {Call: "c", Failure: pipeline.Fail(pipeline.Throttled, "slow")}}}
		b.must(b.store.PutItem(b.ctx, theJob, pipeline.JournalKey(chunk0.ID, 1, 0), pipeline.Encode(journal)))
		_, err = b.Expire(b.ctx, b.read(chunk0), b.clock.Now())
		b.must(err)
		budget, err := b.store.Budget(b.ctx, theJob)
		b.must(err)
		if budget.Spent != 300 || len(budget.Open) != 1 || budget.Open[0].Task != pipeline.WorkTask(7) {
			b.Errorf("got %+v, want the lost 300 spent and the other's open", budget)
		}
		r := b.records(chunk0)[0]
		if r.Tries != 3 || r.Charged != 12 || r.Unnamed != 10 || r.Cost != 11 {
			b.Errorf("got %d tries, %d charged, %d unnamed, cost %d, want 3, 12, 10, 11", r.Tries, r.Charged, r.Unnamed, r.Cost)
		}
	})
	in(t, "a clock that differs too much: nothing is done, and it says why", func(b *bench) {
		b.claimed(b.row(0), "dead")
		b.clock.Advance(time.Hour)
		if _, err := b.Sweep(b.ctx); err == nil || !strings.Contains(err.Error(), "clock") {
			b.Errorf("got %v, want an error about the clock", err)
		}
		b.status(chunk0, pipeline.TaskClaimed)
	}, func(b *bench) { b.cfg.Skew = func() time.Duration { return 90 * time.Second } })
}

func TestCaseD11LaggingIndex(t *testing.T) {
	// The index shows rows as they were; every write carries what was seen.
	in(t, "shows a claim that was renewed, ended or done since: nothing happens to the row, no bell", func(b *bench) {
		stale := b.claimed(b.row(0), "alive")
		b.clock.Advance(time.Minute)
		b.cfg.Store = lagging{b.store, []pipeline.Task{stale}}
		r := reap.New(b.cfg)
		sweep := func() {
			b.Helper()
			before := b.read(chunk0)
			_, err := r.Sweep(b.ctx)
			b.must(err)
			if got := b.read(chunk0); string(pipeline.Encode(got)) != string(pipeline.Encode(before)) {
				b.Errorf("the row changed\n got %s\nwant %s", pipeline.Encode(got), pipeline.Encode(before))
			}
			b.count("bells", len(b.bells(b.work)), 0)
		}
		renewed, err := b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: stale}.Fence(), Expires: b.clock.Now().Add(p20)})
		b.must(err)
		sweep()
		b.count("records", len(b.records(chunk0)), 0)
		_, err = b.store.End(b.ctx, pipelinetest.EndOf(renewed, pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, b.clock.Now()))
		b.must(err)
		sweep()
	})
	in(t, "shows a lapsed claim without the answers that it brought: its loss is the deferral that it is", func(b *bench) {
		stale := b.claimed(b.row(0), "dead")
		_, err := b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: stale}.Fence(), Expires: stale.ExpiresAt + 1, Answers: 5})
		b.must(err)
		b.clock.Advance(time.Minute)
		b.cfg.Store = lagging{b.store, []pipeline.Task{stale}}
		_, err = reap.New(b.cfg).Sweep(b.ctx)
		b.must(err)
		if row := b.status(chunk0, pipeline.TaskPending); row.Attempts != 0 || row.Deferrals != 1 {
			b.Errorf("got %d attempts and %d deferrals, want 0 and 1", row.Attempts, row.Deferrals)
		}
	})
	in(t, "is read again, and meanwhile its worker wakes, renews with answers, and lapses again: that is another lapse", func(b *bench) {
		row := b.claimed(b.row(0), "frozen")
		b.clock.Advance(time.Minute)
		b.cfg.Store = pipelinetest.Wrap(b.store, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			err := do(ctx)
			if op.Name == "Task" {
				_, err := b.store.Renew(ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: b.clock.Now() + 1, Answers: 5})
				b.must(err)
				b.clock.Advance(time.Minute)
			}
			return err
		})
		_, err := reap.New(b.cfg).Sweep(b.ctx)
		b.must(err)
		b.status(chunk0, pipeline.TaskClaimed)
		b.cfg.Store = b.store
		_, err = reap.New(b.cfg).Sweep(b.ctx)
		b.must(err)
		if row := b.status(chunk0, pipeline.TaskPending); row.Attempts != 0 || row.Deferrals != 1 {
			b.Errorf("got %d attempts and %d deferrals, want 0 and 1", row.Attempts, row.Deferrals)
		}
	})
	in(t, "shows a pending row that was claimed or rung since: no second bell", func(b *bench) {
		stale := b.row(0)
		b.clock.Advance(5 * time.Minute)
		b.cfg.Store = lagging{b.store, []pipeline.Task{stale}}
		r := reap.New(b.cfg)
		for range 3 {
			_, err := r.Sweep(b.ctx)
			b.must(err)
		}
		b.count("bells", len(b.bells(b.work)), 1)
		b.claimed(b.read(chunk0), "alive")
		_, err := r.Sweep(b.ctx)
		b.must(err)
		b.count("bells", len(b.bells(b.work)), 0)
		b.status(chunk0, pipeline.TaskClaimed)
	})
	in(t, "shows a row that is gone: it does not come back", func(b *bench) {
		stale := b.row(0)
		b.store.DeleteTask(chunk0)
		b.clock.Advance(5 * time.Minute)
		b.cfg.Store = lagging{b.store, []pipeline.Task{stale}}
		_, err := reap.New(b.cfg).Sweep(b.ctx)
		b.must(err)
		if _, err := b.store.Task(b.ctx, chunk0); !isMissing(err) {
			b.Errorf("got %v, want the row to be missing", err)
		}
	})
}

const p20 = 20 * time.Second

// lagging is a store whose due index shows rows as they were.
type lagging struct {
	reap.Store
	rows []pipeline.Task
}

func (l lagging) Due(_ context.Context, shard int, _ pipeline.Instant, _ string) ([]pipeline.Task, string, error) {
	var rows []pipeline.Task
	for _, row := range l.rows {
		if row.DueShard() == shard {
			rows = append(rows, row)
		}
	}
	return rows, "", nil
}

func TestRings(t *testing.T) {
	p := pipeline.DefaultPolicy()
	in(t, "slow down to every 15 minutes and go on past MaxRings: unclaimable, never given up", func(b *bench) {
		b.job(pipeline.JobRunning, func(j *pipeline.Job) { j.Deadline = 0 })
		b.row(0)
		var at []pipeline.Instant
		told := 0
		for range 12 * 60 {
			told += b.sweep(time.Minute)[reap.Unclaimable]
			for range b.bells(b.work) {
				at = append(at, b.clock.Now())
			}
		}
		for i := 1; i < len(at); i++ {
			gap, want := at[i].Sub(at[i-1]), p.RingWait(i-1)
			if gap < want || gap > want+time.Minute {
				b.Errorf("ring %d came %v after the one before, want %v", i+1, gap, want)
			}
		}
		if len(at) <= p.MaxRings {
			b.Errorf("got %d rings in 12 hours, want them to go on past %d", len(at), p.MaxRings)
		}
		b.count("reported as unclaimable", told, len(at)-p.MaxRings)
		row := b.status(chunk0, pipeline.TaskPending)
		if !row.Unclaimable(p) || row.Attempts != 0 || int(row.Ring) != len(at) {
			b.Errorf("got unclaimable %v, %d attempts, ring %d after %d rings", row.Unclaimable(p), row.Attempts, row.Ring, len(at))
		}
	})
	in(t, "end with the deadline", func(b *bench) {
		b.row(0)
		b.every(10*time.Minute, 25*time.Hour)
		row := b.status(chunk0, pipeline.TaskCancelled)
		if !strings.Contains(row.Reason.Cause, "deadline") {
			b.Errorf("got %s, want the deadline", row.Reason)
		}
		b.bells(b.work)
		b.every(10*time.Minute, time.Hour)
		b.count("bells after", len(b.bells(b.work)), 0)
	})
	in(t, "a row that is not due is left", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.DueAt = r.DueAt.Add(time.Hour) })
		b.every(time.Minute, 30*time.Minute)
		b.count("bells", len(b.bells(b.work)), 0)
	})
	in(t, "a bell that could not be sent is rung again", func(b *bench) {
		b.row(0)
		b.sweep(2 * time.Minute)
		b.count("bells", len(b.bells(b.work)), 0)
		b.sweep(2 * time.Minute)
		b.count("bells", len(b.bells(b.work)), 1)
	}, func(b *bench) { b.cfg.Queues.Work = pipelinetest.WrapQueue(b.work, pipelinetest.LoseWrites(1, "Send")) })
	in(t, "splits and finalizes are rung on their own queue", func(b *bench) {
		b.put(pipelinetest.NewRow(theJob, "finalize#1"))
		b.sweep(2 * time.Minute)
		b.count("bells", len(b.bells(b.control)), 1)
	})
	in(t, "exhausted under a lowered cap: ended by the rule, quiet without a delivery", func(b *bench) {
		b.row(0, func(r *pipeline.Task) { r.Attempts = 2 })
		b.row(1, func(r *pipeline.Task) { r.Attempts, r.Accepted = 2, r.Stages })
		b.row(2, func(r *pipeline.Task) { r.Attempts = 1 })
		b.sweep(2 * time.Minute)
		row := b.status(chunk0, pipeline.TaskAbandoned)
		if !row.Buried || row.EndedBy != "" || row.Reason.None() {
			b.Errorf("got %+v, want buried, by nobody's attempt, and with a reason", row)
		}
		b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(1)}, pipeline.TaskDone)
		b.status(pipeline.Ref{Job: theJob, ID: pipeline.WorkTask(2)}, pipeline.TaskPending)
		b.count("bells", len(b.bells(b.work)), 1)
		b.count("dead letters", len(b.letters(b.work)), 1)
	}, func(b *bench) { b.cfg.Policy.MaxAttempts = 2 })
}

func TestReapersThatSweepAtOnce(t *testing.T) {
	in(t, "a page on which others are at work is read again, not tried row by row", func(b *bench) {
		for n := range 300 {
			b.row(n)
		}
		b.clock.Advance(10 * time.Minute)
		report := b.sweep(0)
		b.count("rung", report["rung"], 0)
		b.count("rows that another had rung and that were tried", report["moved meanwhile"], 3)
	}, func(b *bench) {
		another := false
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Ring" && !another { // another sweeps while this one holds its page
				another = true
				other := b.cfg
				other.Store = b.store
				if _, err := reap.New(other).Sweep(ctx); err != nil {
					b.Error(err)
				}
			}
			return do(ctx)
		})
	})
	asked := "" // the shard that a sweep began with
	in(t, "a sweep begins with another shard than the one before", func(b *bench) {
		first := map[string]bool{}
		for range pipeline.DueShards {
			asked = ""
			b.sweep(0)
			first[asked] = true
		}
		b.count("shards that were the first of a sweep", len(first), pipeline.DueShards)
	}, func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Due" && asked == "" {
				asked = op.On
			}
			return do(ctx)
		})
	})
}

func TestManyReapers(t *testing.T) {
	in(t, "where others move every row, their shard is left to them until the next sweep", func(b *bench) {
		for n := range 300 {
			b.row(n)
		}
		b.clock.Advance(10 * time.Minute)
		refused := b.sweep(0)["moved meanwhile"]
		if refused == 0 || refused > 6*pipeline.DueShards {
			b.Errorf("%d rows that another had rung were tried, want at most six of a shard", refused)
		}
	}, func(b *bench) {
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Ring" { // another is always a little faster
				job, id, _ := strings.Cut(op.On, "/")
				row, err := b.store.Task(ctx, pipeline.Ref{Job: pipeline.JobID(job), ID: pipeline.TaskID(id)})
				b.must(err)
				_, err = b.store.Ring(ctx, pipeline.RingWrite{Seen: row, Due: b.clock.Now().Add(time.Hour), Count: 1})
				b.must(err)
			}
			return do(ctx)
		})
	})
	looks := func(b *bench, jobs int, sweeps int) int {
		for n := range jobs - 1 { // one is there
			id := pipeline.JobID(fmt.Sprintf("%010d-1", n))
			_, _, err := b.store.Submit(b.ctx, pipelinetest.NewJob(id), pipelinetest.NewRow(id, pipeline.SplitTask))
			b.must(err)
		}
		b.sweep(0)
		before := b.finalized
		for range sweeps {
			b.sweep(b.policy.RenewEvery)
		}
		return b.finalized - before
	}
	in(t, "each of a few open jobs is looked at every RenewEvery", func(b *bench) {
		b.count("looks", looks(b, 20, 12), 20*12)
	})
	in(t, "each of many has its turn less often, and at least every minute", func(b *bench) {
		b.count("looks", looks(b, 400, 12), 400)
	})
}
