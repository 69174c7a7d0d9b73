package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// sender sends a try every so often until it may not, and tells when.
type sender struct {
	every   time.Duration
	takes   time.Duration // of one try
	aborted int

	mu   sync.Mutex
	sent []pipeline.Instant
	why  error
}

func (s *sender) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	clock := pipeline.NewRealClock()
	for {
		if err := a.MaySend(ctx); err != nil {
			s.mu.Lock()
			s.why = err
			s.mu.Unlock()
			return stopped(a, err)
		}
		s.mu.Lock()
		s.sent = append(s.sent, clock.Now())
		s.mu.Unlock()
		if err := clock.Sleep(ctx, s.time()); err != nil {
			s.mu.Lock()
			s.aborted++
			s.mu.Unlock()
		}
		a.Record(pipeline.Try{Call: "call"})
		_ = clock.Sleep(ctx, s.every)
	}
}

func (s *sender) time() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takes
}

func (s *sender) last() pipeline.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) == 0 {
		return 0
	}
	return s.sent[len(s.sent)-1]
}

func (s *sender) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

func lots(r *pipeline.Task) { r.MaxTries = 100_000 }

func TestMaySend(t *testing.T) {
	in(t, "no try on a reading of the job that is older than JobFresh; with the next reading it goes on", func(b *bench) {
		b.rung(0, lots)
		s := &sender{every: 10 * time.Millisecond}
		var blind atomic.Bool
		b.start("worker", s, around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Job" && blind.Load() {
				return pipelinetest.ErrLost
			}
			return do(ctx)
		}))
		b.pass(10 * time.Second)
		blind.Store(true)
		from := b.clock.Now()
		b.pass(10 * time.Second)
		if late := s.last().Sub(from); late > b.policy.JobFresh || late < 500*time.Millisecond {
			b.Errorf("the last try began %v after the last reading, want just under %v", late, b.policy.JobFresh)
		}
		before := s.count()
		blind.Store(false)
		b.pass(2 * time.Second)
		if s.count() == before {
			b.Error("it did not go on with the next reading")
		}
	})
	for phase := range 9 {
		in(t, fmt.Sprintf("a reading that took long counts from its beginning, cancelled at phase %d of it", phase), func(b *bench) {
			b.rung(0, lots)
			s := &sender{every: 10 * time.Millisecond}
			b.start("worker", s, around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
				if op.Name != "Job" {
					return do(ctx)
				}
				err := do(ctx)
				_ = b.clock.Sleep(ctx, 1200*time.Millisecond) // the answer is on its way
				return err
			}))
			b.pass(10*time.Second + time.Duration(phase)*200*time.Millisecond)
			cancelledAt := b.clock.Now()
			b.job(pipeline.JobCancelling)
			b.pass(10 * time.Second)
			if late := s.last().Sub(cancelledAt); late > 2*time.Second {
				b.Errorf("the last try began %v after the cancel, want at most 2 s", late)
			}
			if s.count() < 100 {
				b.Errorf("got %d tries, want it to have worked before", s.count())
			}
		})
	}
	in(t, "cancel: no try later than 2 s after, calls in flight aborted, and the stage is on record", func(b *bench) {
		for _, after := range []time.Duration{0, 1, 250, 499, 500, 501, 999, 1400, 3210} {
			s := &sender{takes: 300 * time.Millisecond}
			n := int(after) + 10
			row := b.rung(n, lots, func(r *pipeline.Task) { r.Stages = 3 })
			w := b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
				b.need(a.Checkpoint(ctx, 1, []byte("{}")))
				return s.Handle(ctx, a)
			}))
			b.pass(2*time.Second + after*time.Millisecond)
			s.mu.Lock()
			s.takes = time.Hour
			s.mu.Unlock()
			b.pass(400 * time.Millisecond) // one hangs in flight
			cancelledAt := b.clock.Now()
			b.job(pipeline.JobCancelling, func(j *pipeline.Job) { j.Reason = pipeline.Fail(pipeline.Cancelled, "enough") })
			b.pass(2 * time.Second)
			if late := s.last().Sub(cancelledAt); late > 2*time.Second {
				b.Errorf("the last try began %v after the cancel, want at most 2 s", late)
			}
			if s.aborted != 1 {
				b.Errorf("got %d calls aborted, want the one in flight", s.aborted)
			}
			if got := b.status(row.Ref, pipeline.TaskCancelled); got.Reason.Cause != "enough" {
				b.Errorf("got the reason %q, want the job's", got.Reason.Cause)
			}
			item, err := b.store.Item(b.ctx, theJob, pipeline.CancellationKey(row.ID))
			b.must(err)
			c, err := pipeline.Decode[pipeline.Cancellation](item, "cancellation")
			b.must(err)
			if c.Label != "cancelled-at-stage-2" || c.Saved != 1 || c.Worker != "worker" {
				b.Errorf("got %+v, want cancelled-at-stage-2 with 1 saved", c)
			}
			w.kill()
			b.job(pipeline.JobRunning)
		}
	})
	in(t, "the deadline stops tries as a cancel does, and says so", func(b *bench) {
		b.rung(0, lots)
		deadline := b.clock.Now().Add(10 * time.Second)
		b.job(pipeline.JobRunning, func(j *pipeline.Job) { j.Deadline = deadline })
		s := &sender{takes: 100 * time.Millisecond}
		b.start("worker", s)
		b.pass(20 * time.Second)
		if s.last() > deadline {
			b.Errorf("the last try began %v after the deadline", s.last().Sub(deadline))
		}
		if row := b.status(chunk0, pipeline.TaskCancelled); !strings.Contains(row.Reason.Cause, "deadline") {
			b.Errorf("got the reason %q, want one that names the deadline", row.Reason.Cause)
		}
	})
	in(t, "pause: what is in flight finishes, nothing new starts, parked and uncounted", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 7 * time.Second}
		b.start("worker", s)
		b.pass(10 * time.Second)
		b.job(pipeline.JobPaused)
		b.pass(10 * time.Second)
		if s.count() != 2 || s.aborted != 0 {
			b.Errorf("got %d tries, %d aborted, want 2 that finished", s.count(), s.aborted)
		}
		row := b.status(chunk0, pipeline.TaskParked)
		if row.Attempts != 0 || row.Deferrals != 0 || row.Allowed != 2 {
			b.Errorf("got %d attempts, %d deferrals, %d tries allowed, want 0, 0, 2", row.Attempts, row.Deferrals, row.Allowed)
		}
	})
	in(t, "cancelled while a paused attempt's call is in flight: aborted", func(b *bench) {
		b.rung(0, lots)
		s := &sender{takes: 90 * time.Second}
		b.start("worker", s)
		b.pass(5 * time.Second)
		b.job(pipeline.JobPaused)
		b.pass(5 * time.Second)
		b.job(pipeline.JobCancelling)
		b.pass(2 * time.Second)
		if s.aborted != 1 {
			b.Error("the call in flight was not aborted")
		}
		if row := b.read(chunk0); row.Status != pipeline.TaskParked && row.Status != pipeline.TaskCancelled {
			b.Errorf("got %s, want parked or cancelled", row.Status)
		}
	})
	in(t, "a split goes on while its job is planned, a chunk does not", func(b *bench) {
		b.job(pipeline.JobPlanned)
		row := pipelinetest.NewRow(theJob, "split#x", func(r *pipeline.Task) { r.ReadyAt = b.clock.Now() })
		_, err := b.store.PutTasks(b.ctx, []pipeline.Task{row})
		b.must(err)
		b.must(b.queues.Ring(b.ctx, row))
		b.rung(0)
		b.start("worker", tries(3, time.Second))
		b.pass(10 * time.Second)
		b.status(row.Ref, pipeline.TaskDone)
		b.status(chunk0, pipeline.TaskParked)
	})
	in(t, "a finalize goes on while its job is cancelling", func(b *bench) {
		b.job(pipeline.JobCancelling)
		row := pipelinetest.NewRow(theJob, "finalize#1", func(r *pipeline.Task) { r.ReadyAt = b.clock.Now() })
		_, err := b.store.PutTasks(b.ctx, []pipeline.Task{row})
		b.must(err)
		b.must(b.queues.Ring(b.ctx, row))
		b.start("worker", tries(3, time.Second))
		b.pass(10 * time.Second)
		b.status(row.Ref, pipeline.TaskDone)
	})
}

func TestBlocks(t *testing.T) {
	in(t, "no try is sent that the row has not allowed, and what was not used is given back", func(b *bench) {
		b.rung(0)
		sent, most := 0, 0
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for range 17 {
				b.need(a.MaySend(ctx))
				sent++
				allowed := b.read(chunk0).Allowed
				if most = max(most, allowed); sent > allowed {
					b.Errorf("try %d was sent, the row allows %d", sent, allowed)
				}
				a.Record(pipeline.Try{Call: "call"})
			}
			return succeeds(ctx, a)
		}))
		b.pass(time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Allowed != 17 {
			b.Errorf("got %d tries allowed at the end, want the 17 that were sent", row.Allowed)
		}
		if most > 17+b.policy.Block(10) {
			b.Errorf("got up to %d tries allowed, want at most a block more than were sent", most)
		}
	})
	in(t, "an acceptance allows the next stage's first block, no more than one, and the last allows none", func(b *bench) {
		b.rung(0, func(t *pipeline.Task) { t.Stages = 3 })
		renewals := 0
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for stage := 1; stage <= 3; stage++ {
				b.need(a.MaySend(ctx))
				b.need(a.Checkpoint(ctx, stage, []byte("{}")))
				want := stage + b.policy.Block(10)
				if stage == 3 {
					want--
				}
				if allowed := b.read(chunk0).Allowed; allowed != want {
					b.Errorf("got %d tries allowed after stage %d, want %d", allowed, stage, want)
				}
			}
			return pipeline.Ending{Outcome: pipeline.Succeeded}
		}), around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Renew" {
				renewals++
			}
			return do(ctx)
		}))
		b.pass(time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Allowed != 3 {
			b.Errorf("got %d tries allowed at the end, want the 3 that were sent", row.Allowed)
		}
		if renewals != 1 {
			b.Errorf("renewed %d times, want once, for the first block", renewals)
		}
	})
	in(t, "a hundred at once take no more than a hundred", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.MaxTries = 100 })
		allowed, refused := 0, 0
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			var mu sync.Mutex
			var group pipeline.Group
			for range 300 {
				group.Go(func() {
					err := a.MaySend(ctx)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						allowed++
					} else if errors.Is(err, pipeline.ErrTriesUsed) {
						refused++
					}
				})
			}
			group.Wait()
			return stopped(a, a.Stop())
		}))
		b.pass(time.Second)
		if allowed != 100 || refused != 200 {
			b.Errorf("got %d allowed and %d refused, want 100 and 200", allowed, refused)
		}
		if row := b.status(chunk0, pipeline.TaskAbandoned); row.Reason.Kind != pipeline.Exhausted || row.Allowed != 100 {
			b.Errorf("got %s with %d allowed, want exhausted with 100", row.Reason, row.Allowed)
		}
	})
	in(t, "free tries are given back and use up nothing", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.MaxTries = 5 })
		b.start("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
			for range 50 {
				b.need(a.MaySend(ctx))
				a.Unsent()
				a.Record(pipeline.Try{Call: "call", Failure: pipeline.Fail(pipeline.Throttled, "slow down")})
			}
			return succeeds(ctx, a)
		}))
		b.pass(time.Second)
		if row := b.status(chunk0, pipeline.TaskDone); row.Allowed != 0 {
			b.Errorf("got %d tries allowed, want none used up", row.Allowed)
		}
		if r := b.last(chunk0); r.Tries != 50 || r.Charged != 0 {
			b.Errorf("got %d tries, %d charged, want 50 and none", r.Tries, r.Charged)
		}
	})
	in(t, "over all attempts, lost ones too, no more are sent than the cap", func(b *bench) {
		b.rung(0, func(r *pipeline.Task) { r.MaxTries = 60 })
		b.job(pipeline.JobRunning, func(j *pipeline.Job) { j.Deadline = 0 })
		sent := 0
		for n := range 30 {
			var w *host
			w = b.host("worker", handler(func(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
				for range 3 {
					if err := a.MaySend(ctx); err != nil {
						return stopped(a, err)
					}
					sent++
					a.Record(pipeline.Try{Call: "call"})
					a.Answered()
				}
				if n%2 == 0 {
					w.freeze() // lost with what it was allowed
					return pipeline.Ending{Outcome: pipeline.Deferral, Failure: pipeline.Fail(pipeline.Busy, "frozen")}
				}
				return pipeline.EndingOf(pipeline.Fail(pipeline.Throttled, "slow down"), 0)
			}))
			w.run()
			b.pass(time.Second)
			w.kill()
			row := b.read(chunk0)
			if row.Status.Ended() {
				break
			}
			row.Losses, row.Attempts = 0, min(row.Attempts, 1) // as if stages were accepted: only the cap of tries ends this
			b.must(b.store.PutRaw(chunk0, raw(row)))
			b.sweeping(2 * time.Hour)
		}
		if sent > 60 {
			b.Errorf("got %d tries, want at most 60", sent)
		}
		if row := b.read(chunk0); row.Status != pipeline.TaskAbandoned || row.Reason.Kind != pipeline.Exhausted {
			b.Errorf("got %s (%s), want abandoned since its tries are used up", row.Status, row.Reason)
		}
	})
}

func raw(row pipeline.Task) map[string]any {
	columns, err := pipeline.Decode[map[string]any](pipeline.Encode(row), "row")
	if err != nil {
		panic(err)
	}
	return columns
}
