package pipelinetest

import (
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

var claimPromises = []promise{
	{"64 workers race for one task and one wins", oneWinsTheRace},
	{"a claim is counted before the work and resets the rings", claimCounts},
	{"a row lost twice is claimed only by a worker that holds no other claim", lostTwiceIsAlone},
	{"why a claim was refused is told from the row that the refusal shows", whyRefused},
	{"a row without attempts, generation or lists is claimed and capped", olderRowsAreCapped},
	{"a lower cap stops rows that an older policy let run", lowerCapStops},
	{"a late worker cannot renew, checkpoint, end or expire under a newer claim", lateWorkerIsFenced},
	{"a stage written by a zombie before its successor got there is not read", zombieStageIsNotRead},
	{"stages are accepted once, in order, and attempts count from there again", stagesInOrder},
	{"tries allowed never go back, nor over what the task may ever send", allowedIsMonotone},
	{"the end gives back what was not sent, once", endGivesBack},
	{"finished work is never abandoned", finishedIsDone},
	{"a deferral is refunded once and bounded", deferralsAreBounded},
	{"a poison is claimed exactly as often as the policy allows", poisonIsCapped},
}

func oneWinsTheRace(t *testing.T, h Harness) {
	b := newBench(t, h)
	const workers = 64
	row := b.row()
	for round := range 10 {
		won := make([]bool, workers)
		errs := make([]error, workers)
		ids := make([]string, workers)
		together(workers, func(i int) {
			w := ClaimOf(row, "w"+string(rune('A'+i)), T0)
			w.MaxAttempts = 100
			ids[i] = w.ClaimID
			errs[i] = steadily(func() error {
				_, err := h.Store.Claim(b.ctx, w)
				if old, refused := pipeline.Old(err); refused && w.Landed(old, 0, pipeline.DefaultPolicy()) {
					return nil // ours, its answer was lost on the way
				}
				return err
			})
			won[i] = errs[i] == nil
		})
		winners, winner := 0, ""
		for i := range workers {
			if won[i] {
				winners++
				winner = ids[i]
			} else {
				b.fails(errs[i], pipeline.ErrFenced)
			}
		}
		stands := b.read(row.Ref)
		if winners != 1 || stands.ClaimID != winner || stands.Attempts != round+1 || stands.Generation != int64(round+1) {
			t.Fatalf("round %d: %d winners (the last %s), and the row shows claim %s, attempts %d, generation %d",
				round, winners, winner, stands.ClaimID, stands.Attempts, stands.Generation)
		}
		again := pipeline.Verdict{Status: pipeline.TaskPending, Attempts: stands.Attempts}
		var err error
		row, err = h.Store.End(b.ctx, EndOf(stands, again, pipeline.Failure{}, T0))
		b.must(err)
	}
}

func claimCounts(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row(func(row *pipeline.Task) { row.Rings, row.Ring, row.Answers = 7, 9, 3 })
	got := b.claim(row, "A", T0)
	if got.Attempts != 1 || got.Generation != 1 || got.Rings != 0 || got.Answers != 0 || got.Ring != 9 {
		t.Errorf("got attempts %d, generation %d, rings %d, answers %d, ring %d; want 1, 1, 0, 0, 9", got.Attempts, got.Generation, got.Rings, got.Answers, got.Ring)
	}
	b.stands(got)
}

func lostTwiceIsAlone(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row(func(row *pipeline.Task) { row.Losses = pipeline.AloneLosses })
	w := ClaimOf(row, "A", T0)
	_, err := h.Store.Claim(b.ctx, w)
	b.refused(err, row)
	if old, _ := pipeline.Old(err); pipeline.WhyRefused(old, w) != pipeline.RefusedAlone {
		t.Errorf("got %s, want %s", pipeline.WhyRefused(old, w), pipeline.RefusedAlone)
	}
	w.Alone = true
	_, err = h.Store.Claim(b.ctx, w)
	b.must(err)
}

func whyRefused(t *testing.T, h Harness) {
	b := newBench(t, h)
	for want, edit := range map[pipeline.Refusal]func(*pipeline.Task){
		pipeline.RefusedEnded:     func(row *pipeline.Task) { row.Status = pipeline.TaskDone },
		pipeline.RefusedHeld:      func(row *pipeline.Task) { row.Status = pipeline.TaskClaimed },
		pipeline.RefusedParked:    func(row *pipeline.Task) { row.Status = pipeline.TaskParked },
		pipeline.RefusedEarly:     func(row *pipeline.Task) { row.ReadyAt = T0 + 1 },
		pipeline.RefusedExhausted: func(row *pipeline.Task) { row.Attempts = 3 },
		pipeline.RefusedAlone:     func(row *pipeline.Task) { row.Losses = 2 },
		pipeline.RefusedMoved:     func(row *pipeline.Task) { row.Generation = 1 },
	} {
		b.run(string(want), func(b *bench) {
			row := b.row(edit)
			w := ClaimOf(row, "A", T0)
			w.Seen = 0
			_, err := h.Store.Claim(b.ctx, w)
			b.refused(err, row)
			if old, _ := pipeline.Old(err); pipeline.WhyRefused(old, w) != want {
				b.Errorf("got %s, want %s", pipeline.WhyRefused(old, w), want)
			}
		})
	}
}

func olderRowsAreCapped(t *testing.T, h Harness) {
	b := newBench(t, h)
	ref := pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(1)}
	h.Raw(t, ref, map[string]any{"tenant": "tenant", "status": "pending", "stages": 2, "ready_at": T0, "due_at": T0})
	b.listed(pipeline.Task{Ref: ref}, T0, true)
	row := b.read(ref)
	for attempt := 1; attempt <= 3; attempt++ {
		claimed := b.claim(row, "A", T0)
		if claimed.Attempts != attempt || claimed.Generation != int64(attempt) {
			t.Fatalf("got attempt %d of generation %d, want %d of %d", claimed.Attempts, claimed.Generation, attempt, attempt)
		}
		var err error
		again := pipeline.Verdict{Status: pipeline.TaskPending, Attempts: claimed.Attempts}
		row, err = h.Store.End(b.ctx, EndOf(claimed, again, pipeline.Fail(pipeline.Ambiguous, "again"), T0))
		b.must(err)
	}
	row.ReadyAt = T0
	w := ClaimOf(row, "A", later)
	_, err := h.Store.Claim(b.ctx, w)
	b.fails(err, pipeline.ErrFenced)

	b.run("and its stages are accepted", func(b *bench) {
		ref := pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(1)}
		h.Raw(b.T, ref, map[string]any{"status": "pending", "stages": 2, "ready_at": T0, "due_at": T0})
		claimed := b.claim(b.read(ref), "A", T0)
		row, err := h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: claimed}.Fence(), Stage: 1})
		b.must(err)
		if row.Body(1) != 1 || row.Accepted != 1 {
			b.Errorf("got body %d of accepted stage %d, want 1 of 1", row.Body(1), row.Accepted)
		}
	})
	b.run("and a stage that is accepted without a body leaves later ones their place", func(b *bench) {
		ref := pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(1)}
		h.Raw(b.T, ref, map[string]any{"status": "pending", "stages": 3, "accepted": 1, "ready_at": T0, "due_at": T0})
		claimed := b.claim(b.read(ref), "A", T0)
		row, err := h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: claimed}.Fence(), Stage: 2})
		b.must(err)
		if row.Body(1) != 0 || row.Body(2) != 1 {
			b.Errorf("got bodies %v, want none of the first stage and generation 1 of the second", row.Bodies)
		}
	})
}

func lowerCapStops(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row(func(row *pipeline.Task) { row.Attempts = 2 })
	w := ClaimOf(row, "A", T0)
	w.MaxAttempts = 2
	_, err := h.Store.Claim(b.ctx, w)
	b.refused(err, row)
	w.MaxAttempts = 3
	_, err = h.Store.Claim(b.ctx, w)
	b.must(err)
}

// succeeded is a row that A held, that was expired, and that B holds now.
func succeeded(b *bench) (a, row pipeline.Task) {
	b.Helper()
	a = b.claim(b.row(), "A", T0)
	again := pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1, Losses: 1}
	expired, err := b.Store.Expire(b.ctx, ExpireOf(a, again, T0+25_001))
	b.must(err)
	return a, b.claim(expired, "B", T0+25_001)
}

func lateWorkerIsFenced(t *testing.T, h Harness) {
	b := newBench(t, h)
	fence := func(a pipeline.Task) pipeline.Fence { return pipeline.Claim{Task: a}.Fence() }
	for name, do := range map[string]func(b *bench, a pipeline.Task) error{
		"renew": func(b *bench, a pipeline.Task) error {
			_, err := b.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: fence(a), Expires: later, Allowed: 10})
			return err
		},
		"checkpoint": func(b *bench, a pipeline.Task) error {
			_, err := b.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: fence(a), Stage: 1})
			return err
		},
		"end": func(b *bench, a pipeline.Task) error {
			_, err := b.Store.End(b.ctx, EndOf(a, pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, T0+30_000))
			return err
		},
		"expire, on what it saw before": func(b *bench, a pipeline.Task) error {
			_, err := b.Store.Expire(b.ctx, ExpireOf(a, pipeline.Verdict{Status: pipeline.TaskAbandoned}, T0+10_000_000))
			return err
		},
	} {
		b.run(name, func(b *bench) {
			a, stands := succeeded(b)
			b.refused(do(b, a), stands)
		})
	}
	b.run("with the generation of the newer claim but its own claim id", func(b *bench) {
		a, stands := succeeded(b)
		a.Generation = stands.Generation
		_, err := b.Store.End(b.ctx, EndOf(a, pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, T0))
		b.refused(err, stands)
	})
}

func zombieStageIsNotRead(t *testing.T, h Harness) {
	b := newBench(t, h)
	a, row := succeeded(b)
	put := func(generation int64, body string) {
		b.Helper()
		b.must(h.Store.PutItem(b.ctx, b.job, pipeline.BodyKey(row.ID, 1, generation), []byte(body)))
	}
	put(a.Generation, "the zombie's")
	put(row.Generation, "the successor's")
	_, err := h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: a}.Fence(), Stage: 1})
	b.refused(err, row)
	row, err = h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: 1})
	b.must(err)
	put(a.Generation, "the zombie's, later")
	_, err = h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: a}.Fence(), Stage: 1})
	b.refused(err, row)
	body, err := h.Store.Item(b.ctx, b.job, pipeline.BodyKey(row.ID, 1, b.read(row.Ref).Body(1)))
	b.must(err)
	if string(body) != "the successor's" {
		t.Errorf("the row leads to %q, want the successor's", body)
	}
}

func stagesInOrder(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(func(row *pipeline.Task) { row.Attempts, row.Losses = 1, 1 }), "A", T0)
	accept := func(row pipeline.Task, stage int) (pipeline.Task, error) {
		return h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: stage})
	}
	_, err := accept(row, 2)
	b.refused(err, row)
	first, err := accept(row, 1)
	b.must(err)
	if first.Attempts != 1 || first.Losses != 0 || first.Accepted != 1 || first.Body(1) != 1 {
		t.Errorf("got attempts %d, losses %d, accepted %d, body %d; want 1, 0, 1, 1", first.Attempts, first.Losses, first.Accepted, first.Body(1))
	}
	_, err = accept(row, 1)
	b.refused(err, first)
	ended, err := h.Store.End(b.ctx, EndOf(first, pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1}, pipeline.Failure{}, T0))
	b.must(err)
	next := b.claim(ended, "B", T0)
	second, err := accept(next, 2)
	b.must(err)
	if second.Body(1) != 1 || second.Body(2) != 2 || second.Body(3) != 0 {
		t.Errorf("got bodies %v, want stage 1 of generation 1 and stage 2 of generation 2", second.Bodies)
	}
	b.stands(second)
}

func allowedIsMonotone(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(func(row *pipeline.Task) { row.MaxTries = 24 }), "A", T0)
	renew := func(allowed int) (pipeline.Task, error) {
		return h.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: row.ExpiresAt + 1, Allowed: allowed})
	}
	must := func(allowed int) {
		b.Helper()
		next, err := renew(allowed)
		b.must(err)
		if next.Allowed != allowed {
			t.Errorf("got %d tries allowed, want %d", next.Allowed, allowed)
		}
		row = next
	}
	must(12)
	_, err := renew(11)
	b.refused(err, row)
	must(12)
	_, err = renew(25)
	b.refused(err, row)
	_, err = h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: 1, Allowed: 11})
	b.refused(err, row)
	_, err = h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: 1, Allowed: 25})
	b.refused(err, row)
	must(24)
	lost, err := h.Store.Expire(b.ctx, ExpireOf(row, pipeline.Verdict{Status: pipeline.TaskPending}, later))
	b.must(err)
	if lost.Allowed != 24 {
		t.Errorf("got %d tries allowed after a loss, want 24: a lost block counts as sent", lost.Allowed)
	}
}

func endGivesBack(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	row, err := h.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: later, Allowed: 12})
	b.must(err)
	end := EndOf(row, pipeline.Verdict{Status: pipeline.TaskPending}, pipeline.Failure{}, T0)
	end.Allowed = 13
	_, err = h.Store.End(b.ctx, end)
	b.refused(err, row)
	end.Allowed = 5
	ended, err := h.Store.End(b.ctx, end)
	b.must(err)
	if ended.Allowed != 5 {
		t.Errorf("got %d tries allowed, want the 5 that were sent", ended.Allowed)
	}
	end.Allowed = 4
	_, err = h.Store.End(b.ctx, end)
	b.refused(err, ended)
}

func finishedIsDone(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row(func(row *pipeline.Task) { row.Stages, row.Attempts = 1, 2 })
	row = b.claim(row, "A", T0)
	row, err := h.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: 1})
	b.must(err)
	now := T0.Add(time.Hour)
	v := pipeline.Next(pipeline.DefaultPolicy(), pipeline.StandingOf(row, T0), pipeline.Ending{Outcome: pipeline.Died}, now, 0)
	row, err = h.Store.Expire(b.ctx, ExpireOf(row, v, now))
	b.must(err)
	if row.Status != pipeline.TaskDone {
		t.Errorf("got %s, want done: every stage was accepted before the worker died", row.Status)
	}
	b.listed(row, now, false)
}

func deferralsAreBounded(t *testing.T, h Harness) {
	b := newBench(t, h)
	p := pipeline.DefaultPolicy()
	p.MaxDeferrals, p.MaxAttempts = 4, 3
	row := b.row()
	now, claims := T0, 0
	for row.Status == pipeline.TaskPending && claims < 100 {
		w := ClaimOf(row, "A", now)
		claimed, err := h.Store.Claim(b.ctx, w)
		b.must(err)
		claims++
		ending := pipeline.Ending{Outcome: pipeline.Deferral, Failure: pipeline.Fail(pipeline.Throttled, "slow down")}
		end := EndOf(claimed, pipeline.Next(p, pipeline.StandingOf(claimed, 0), ending, now, 0), ending.Failure, now)
		row, err = h.Store.End(b.ctx, end)
		b.must(err)
		if want := min(claims, p.MaxDeferrals); row.Deferrals != want {
			t.Errorf("after %d deferrals: got %d counted, want %d", claims, row.Deferrals, want)
		}
		_, err = h.Store.End(b.ctx, end)
		b.refused(err, row) // the refund does not land twice
		now = row.ReadyAt
	}
	if row.Status != pipeline.TaskAbandoned || claims != p.MaxDeferrals+p.MaxAttempts {
		t.Errorf("got %s after %d claims, want abandoned after %d deferrals and %d attempts", row.Status, claims, p.MaxDeferrals, p.MaxAttempts)
	}
}

func poisonIsCapped(t *testing.T, h Harness) {
	b := newBench(t, h)
	p := pipeline.DefaultPolicy()
	row := b.row()
	now, claims := T0, 0
	for row.Status == pipeline.TaskPending && claims < 100 {
		w := ClaimOf(row, "A", now)
		w.Alone = true
		claimed, err := h.Store.Claim(b.ctx, w)
		b.must(err)
		claims++
		now = claimed.ExpiresAt.Add(p.MaxSkew) + 1
		v := pipeline.Next(p, pipeline.StandingOf(claimed, 0), pipeline.Ending{Outcome: pipeline.Died}, now, 0)
		row, err = h.Store.Expire(b.ctx, ExpireOf(claimed, v, now))
		b.must(err)
		now = row.ReadyAt
	}
	if row.Status != pipeline.TaskAbandoned || claims != p.MaxAttempts {
		t.Errorf("got %s after %d claims, want abandoned after %d", row.Status, claims, p.MaxAttempts)
	}
	w := ClaimOf(row, "A", now)
	w.Alone = true
	_, err := h.Store.Claim(b.ctx, w)
	b.refused(err, row)
}
