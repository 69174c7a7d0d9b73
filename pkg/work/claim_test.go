package work_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// works is a long attempt: 30 tries of a second and three stages.
var works = tries(30, time.Second)

func TestLostAnswers(t *testing.T) {
	for _, op := range []string{"Claim", "Renew", "Checkpoint", "End", "PutItem", "Delete"} {
		in(t, "of every first "+op+": the attempt goes on as if it had come", func(b *bench) {
			b.rung(0)
			w := b.start("worker", works, around(pipelinetest.LoseAnswers(1, op)))
			b.pass(time.Minute)
			row := b.status(chunk0, pipeline.TaskDone)
			if row.Generation != 1 || len(w.ends()) != 1 {
				b.Errorf("got generation %d and %d ends, want one attempt", row.Generation, len(w.ends()))
			}
			if record := b.last(chunk0); record.Tries != 30 || record.Outcome != pipeline.Succeeded {
				b.Errorf("got a record of %d tries that %s, want 30 that succeeded", record.Tries, record.Outcome)
			}
		})
		in(t, "of every second write, "+op+" too: one attempt", func(b *bench) {
			b.rung(0)
			var n atomic.Int64
			b.start("worker", works, around(func(ctx context.Context, o pipelinetest.Op, do func(context.Context) error) error {
				err := do(ctx)
				if o.Name == op && n.Add(1)%2 == 1 {
					return pipelinetest.ErrLost
				}
				return err
			}))
			b.pass(2 * time.Minute)
			if row := b.status(chunk0, pipeline.TaskDone); row.Generation != 1 {
				b.Errorf("got generation %d, want 1", row.Generation)
			}
		})
	}
	in(t, "of a claim, found out only when it may have expired: not taken for ours", func(b *bench) {
		b.rung(0)
		b.start("worker", handler(succeeds), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			err := do(ctx)
			if op.Name == "Claim" && err == nil && b.read(chunk0).Generation == 1 {
				_ = b.clock.Sleep(ctx, b.policy.ClaimTTL-b.policy.MaxSkew) // a slow network
				return pipelinetest.ErrLost
			}
			return err
		}))
		b.pass(b.policy.ClaimTTL + time.Second)
		if row := b.read(chunk0); row.Generation != 1 || row.Accepted != 0 {
			b.Errorf("got generation %d with %d stages, want the first, without work", row.Generation, row.Accepted)
		}
	})
	in(t, "of every acceptance of the last stage: an attempt that ends as it does not know of it is done all the same", func(b *bench) {
		b.rung(0, func(t *pipeline.Task) { t.Stages = 1 })
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			_ = a.Checkpoint(ctx, 1, []byte("{}"))
			return pipeline.EndingOf(pipeline.Fail(pipeline.Invalid, "it gave up"), 0)
		}), around(pipelinetest.LoseAnswers(100, "Checkpoint")))
		b.pass(time.Minute)
		if row := b.status(chunk0, pipeline.TaskDone); row.Accepted != 1 {
			b.Errorf("got %d stages accepted, want 1", row.Accepted)
		}
	})
	in(t, "of every acceptance in the last attempt of a stage: attempts count from there all the same", func(b *bench) {
		b.rung(0, func(t *pipeline.Task) { t.Stages, t.Attempts = 2, b.policy.MaxAttempts-1 })
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			_ = a.Checkpoint(ctx, 1, []byte("{}"))
			return pipeline.EndingOf(pipeline.Fail(pipeline.Ambiguous, "it knows of none"), 0)
		}), around(pipelinetest.LoseAnswers(100, "Checkpoint")))
		b.pass(20 * time.Second)
		if row := b.status(chunk0, pipeline.TaskPending); row.Accepted != 1 || row.Attempts != 1 {
			b.Errorf("got %d stages accepted and %d attempts, want 1 and 1", row.Accepted, row.Attempts)
		}
	})
	in(t, "of a renewal that allowed a block: the block counts once", func(b *bench) {
		b.rung(0)
		b.start("worker", tries(3, time.Second), around(pipelinetest.LoseAnswers(1, "Renew")))
		b.pass(10 * time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Allowed != 3 {
			b.Errorf("got %d tries allowed at the end, want the 3 that were sent", row.Allowed)
		}
	})
	in(t, "of a renewal to the end, block landed: its stage is accepted all the same", func(b *bench) {
		b.rung(0, func(t *pipeline.Task) { t.Stages = 1 }) // the last stage, which allows no block of its own
		failing := true
		w := b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			if err := a.MaySend(ctx); err == nil {
				b.Error("a try was allowed whose block was not written for sure")
			}
			failing = false
			return succeeds(ctx, a)
		}), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			err := do(ctx)
			if op.Name == "Renew" && failing {
				_ = err
				return pipelinetest.ErrLost
			}
			return err
		}))
		b.pass(20 * time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Allowed != 0 {
			b.Errorf("got %d tries allowed at the end, want none: none was sent", row.Allowed)
		}
		if len(w.ends()) != 1 {
			b.Errorf("got %d attempts, want one", len(w.ends()))
		}
	})
}

func TestRenewals(t *testing.T) {
	in(t, "a long attempt is never expired and stays the first", func(b *bench) {
		b.policy.AttemptTimeout, b.policy.JobDeadline = 2*time.Hour, 24*time.Hour
		b.rung(0)
		w := b.start("worker", tries(30, 90*time.Second))
		b.sweeping(46 * time.Minute)
		if row := b.status(chunk0, pipeline.TaskDone); row.Generation != 1 {
			b.Errorf("got generation %d, want 1", row.Generation)
		}
		if len(w.ends()) != 1 {
			b.Errorf("got %d attempts, want one", len(w.ends()))
		}
	})
	in(t, "every renewal refused for a busy store: no try after the own expiry, and it says why", func(b *bench) {
		b.rung(0)
		var last time.Duration
		began := b.clock.Mono()
		w := b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for {
				if err := a.MaySend(ctx); err != nil {
					return stopped(a, err)
				}
				last = b.clock.Mono()
				_ = b.clock.Sleep(ctx, 100*time.Millisecond)
				a.Record(pipeline.Try{Call: "call"})
			}
		}), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Renew" && b.clock.Mono()-began > time.Second {
				return pipelinetest.ErrLost // and it did not land
			}
			return do(ctx)
		}))
		b.policy.MaxTries = 1000
		b.pass(time.Minute)
		if last-began > b.policy.ClaimTTL || last == 0 {
			b.Errorf("the last try began after %v, want before %v", last-began, b.policy.ClaimTTL)
		}
		if ends := w.ends(); len(ends) != 1 || ends[0].Outcome != pipeline.Deferral {
			b.Fatalf("got the ends %+v, want one deferral", ends)
		}
		if record := b.last(chunk0); !strings.Contains(record.Failure.Cause, "claim was lost") && !strings.Contains(record.Failure.Cause, "answer was lost") {
			b.Errorf("got the reason %q, want one that speaks of the lost claim", record.Failure.Cause)
		}
	})
	for name, step := range map[string]time.Duration{"forward": 10 * time.Minute, "back": -10 * time.Minute} {
		in(t, "the wall clock jumps "+name+": the claim does not become longer, and no try is sent after it", func(b *bench) {
			b.rung(0, func(r *pipeline.Task) { r.MaxTries = 10_000 })
			var last pipeline.Instant
			w := b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
				for {
					if err := a.MaySend(ctx); err != nil {
						return stopped(a, err)
					}
					last = b.clock.Now()
					_ = b.clock.Sleep(ctx, 100*time.Millisecond)
					a.Record(pipeline.Try{Call: "call"})
				}
			}))
			b.pass(7 * time.Second)
			w.clock.step(step)
			latest := b.read(chunk0).ExpiresAt
			for range 60 {
				b.pass(time.Second)
				row := b.read(chunk0)
				if row.Status == pipeline.TaskClaimed && row.Generation == 1 && row.ExpiresAt > latest.Add(time.Second) {
					b.Fatalf("the claim lasts until %s, want until %s", row.ExpiresAt, latest)
				}
			}
			if last > latest {
				b.Errorf("the last try began at %s, want none after %s", last, latest)
			}
			if len(w.ends()) == 0 || w.ends()[0].Outcome != pipeline.Deferral {
				b.Errorf("got the ends %+v, want the attempt to stop as a deferral", w.ends())
			}
		})
	}
	in(t, "a long call in flight while the wall clock jumps forward: the renewal does not follow it", func(b *bench) {
		b.rung(0)
		w := b.start("worker", tries(1, 90*time.Second))
		b.pass(7 * time.Second)
		latest := b.read(chunk0).ExpiresAt
		w.clock.step(10 * time.Minute)
		b.pass(20 * time.Second)
		if row := b.read(chunk0); row.ExpiresAt > latest.Add(time.Second) {
			b.Errorf("the claim lasts until %s, want until %s", row.ExpiresAt, latest)
		}
	})
	in(t, "a refused renewal stops the attempt; what is in flight finishes", func(b *bench) {
		b.rung(0)
		finished := false
		w := b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			b.need(a.MaySend(ctx))
			finished = b.clock.Sleep(ctx, 15*time.Second) == nil
			err := a.MaySend(ctx)
			if !errors.Is(err, pipeline.ErrClaimLost) {
				b.Errorf("got %v from MaySend, want ErrClaimLost", err)
			}
			return stopped(a, err)
		}))
		b.pass(time.Second)
		row := b.read(chunk0)
		_, err := b.store.Expire(b.ctx, pipeline.ExpireWrite{
			Seen: row, Now: b.clock.Now(), Exited: "worker", ReadyAt: b.clock.Now().Add(time.Hour),
			Verdict: pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1, Losses: 1},
		})
		b.must(err)
		b.pass(30 * time.Second)
		if !finished {
			b.Error("the call in flight was aborted: it was paid for")
		}
		if len(w.ends()) != 0 {
			b.Errorf("got the ends %+v, want none: it had nothing to end", w.ends())
		}
		if row := b.status(chunk0, pipeline.TaskPending); row.Losses != 1 || row.Deferrals != 0 {
			b.Errorf("got %d losses and %d deferrals, want what the expiry set", row.Losses, row.Deferrals)
		}
	})
}

func TestZombie(t *testing.T) {
	// Frozen at its next write of each kind, past its expiry; a successor completes; then it wakes up.
	for _, op := range []string{"Renew", "Checkpoint", "End", "PutItem"} {
		in(t, "frozen before "+op+" while its successor completes: refused, and nothing of the row changes", func(b *bench) {
			b.rung(0)
			var zombie *host
			var frozen atomic.Bool
			zombie = b.host("zombie", tries(3, 4*time.Second), around(func(ctx context.Context, o pipelinetest.Op, do func(context.Context) error) error {
				if o.Name == op && b.read(chunk0).Allowed > 0 && !frozen.Swap(true) {
					zombie.freeze()
					return zombie.stand(ctx, o, do)
				}
				return do(ctx)
			}))
			zombie.run()
			b.pass(20 * time.Second)
			b.status(chunk0, pipeline.TaskClaimed)
			next := b.start("next", tries(3, time.Second))
			b.sweeping(time.Minute)
			want := b.status(chunk0, pipeline.TaskDone)
			if op == "End" { // all of it was accepted: the expiry finds it done
				if want.EndedBy != pipeline.ExpiredBy || len(next.ends()) != 0 {
					b.Fatalf("got ended by %s, want by the expiry", want.EndedBy)
				}
			} else if want.ClaimedBy != "next" || len(next.ends()) != 1 {
				b.Fatalf("got claimed by %s, want the successor to have done it", want.ClaimedBy)
			}
			zombie.thaw()
			b.sweeping(8 * time.Minute)
			got := b.read(chunk0)
			if string(pipeline.Encode(got)) != string(pipeline.Encode(want)) {
				b.Errorf("the zombie changed the row\n got %s\nwant %s", pipeline.Encode(got), pipeline.Encode(want))
			}
			for stage := 1; stage <= 3; stage++ {
				if got.Body(stage) != want.Generation {
					b.Errorf("stage %d is of generation %d, want %d", stage, got.Body(stage), want.Generation)
				}
			}
			b.empty("after the zombie")
		})
	}
	in(t, "frozen between tries: it sends none after it wakes up", func(b *bench) {
		b.rung(0)
		sent := 0
		zombie := b.start("zombie", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for {
				if err := a.MaySend(ctx); err != nil {
					return stopped(a, err)
				}
				sent++
				_ = b.clock.Sleep(ctx, time.Second)
				a.Record(pipeline.Try{Call: "call"})
			}
		}))
		b.pass(3500 * time.Millisecond)
		zombie.freeze() // its next renewal and its next reading of the job hang
		b.pass(3 * time.Second)
		before := sent
		b.start("next", tries(3, time.Second))
		b.sweeping(time.Minute)
		zombie.thaw()
		b.sweeping(time.Minute)
		if sent > before {
			b.Errorf("got %d tries after the freeze, want none", sent-before)
		}
		if before > 6 {
			b.Errorf("got %d tries before, want them to stop when the reading of the job was too old", before)
		}
		b.status(chunk0, pipeline.TaskDone)
	})
	in(t, "a held-back renewal, end and acceptance that arrive under the next claim are refused", func(b *bench) {
		row := b.row(0)
		first, err := b.store.Claim(b.ctx, pipelinetest.ClaimOf(row, "old", b.clock.Now()))
		b.must(err)
		b.pass(b.policy.ClaimTTL + b.policy.MaxSkew + time.Millisecond)
		b.must(b.queues.Ring(b.ctx, first))
		w := b.start("next", tries(1, 10*time.Second))
		b.pass(5 * time.Second)
		if got := b.read(chunk0); got.ClaimedBy != "next" {
			b.Fatalf("got claimed by %s, want next", got.ClaimedBy)
		}
		old := pipeline.Claim{Task: first}.Fence()
		_, renewed := b.store.Renew(b.ctx, pipeline.RenewWrite{Fence: old, Expires: b.clock.Now().Add(time.Hour), Allowed: 100})
		_, ended := b.store.End(b.ctx, pipelinetest.EndOf(first, pipeline.Verdict{Status: pipeline.TaskAbandoned}, pipeline.Failure{}, b.clock.Now()))
		_, accepted := b.store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: old, Stage: 1, Allowed: 100})
		for _, err := range []error{renewed, ended, accepted} {
			if !errors.Is(err, pipeline.ErrFenced) {
				b.Errorf("got %v, want a refusal", err)
			}
		}
		b.pass(30 * time.Second)
		b.status(chunk0, pipeline.TaskDone)
		if len(w.ends()) != 1 {
			b.Errorf("got %d ends, want the new claim to be undisturbed", len(w.ends()))
		}
	})
}
