package smoke_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/smoke"
)

func TestAStackThatKeepsItsPromises(t *testing.T) {
	in(t, func(b *bench, r smoke.Report, err error) {
		if err != nil || !r.Held() {
			b.Errorf("got error %v, want every promise kept", err)
		}
	})
}

// stopsIt is a queue at whose dead letter a person stops the canary.
type stopsIt struct {
	pipeline.Queue
	b *bench
}

func (q stopsIt) Bury(ctx context.Context, l pipeline.DeadLetter) error {
	defer q.b.interrupt()
	return q.Queue.Bury(ctx, l)
}

func (q stopsIt) Unbury(ctx context.Context, job pipeline.JobID) (int, error) {
	return unbury(ctx, q.Queue, job)
}

func TestACanaryThatIsStoppedAtItsDeadLetterTakesItBack(t *testing.T) {
	in(t, func(b *bench, r smoke.Report, err error) {
		letters, _, failed := b.back.Queues.Work.DeadLetters(t.Context(), "")
		if err != nil || failed != nil || len(letters) > 0 || r.Left > 0 {
			b.Errorf("%d letters and %d jobs are left, error %v, %v", len(letters), r.Left, err, failed)
		}
	}, func(b *bench) { b.work = func(q pipeline.Queue) pipeline.Queue { return stopsIt{q, b} } })
}

// Over a network the answer to a write is lost with the request that is given up.
func TestACanaryThatIsStoppedWhileItSubmitsLeavesNothing(t *testing.T) {
	for nth := range 3 {
		in(t, func(b *bench, r smoke.Report, err error) {
			jobs, _, failed := b.back.Store.Jobs(t.Context(), smoke.Tenant, "", 100)
			if err != nil || failed != nil || len(jobs) > 0 || r.Left > 0 || !r.Stopped {
				b.Errorf("submit %d: %d jobs are there, stopped %v, error %v, %v", nth, len(jobs), r.Stopped, err, failed)
			}
		}, func(b *bench) {
			b.store = func(s pipeline.Store) pipeline.Store {
				return pipelinetest.Wrap(s, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
					err := do(ctx)
					if op.Name != "Submit" {
						return err
					}
					if nth--; nth == -1 {
						b.interrupt()
					}
					return errors.Join(err, ctx.Err())
				})
			}
		})
	}
}

func TestAWorkerThatComesTooLateToBeKilledIsFollowedByAnother(t *testing.T) {
	for _, c := range []struct {
		early int
		holds bool
	}{{2, true}, {3, false}} {
		in(t, func(b *bench, r smoke.Report, err error) {
			if err != nil || r.Held() != c.holds || r.Left > 0 {
				b.Errorf("%d came too late: got error %v, held %v, %d jobs left; want held %v", c.early, err, r.Held(), r.Left, c.holds)
			}
		}, func(b *bench) { b.early = c.early })
	}
}

// Stopped in the middle of any check, it removes what it made.
func TestACanaryThatIsStoppedLeavesNothing(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 30 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			in(t, func(b *bench, r smoke.Report, err error) {
				if err != nil || r.Held() || r.Left > 0 {
					b.Errorf("got error %v, held %v, %d jobs left; want that it was stopped and left none", err, r.Held(), r.Left)
				}
				jobs, _, err := b.back.Store.Jobs(t.Context(), smoke.Tenant, "", 100)
				if err != nil || len(jobs) > 0 {
					b.Errorf("%d of its jobs are there, error %v", len(jobs), err)
				}
				letters, _, err := b.back.Queues.Work.DeadLetters(t.Context(), "")
				if err != nil || len(letters) > 0 {
					b.Errorf("%d of its dead letters are there, error %v", len(letters), err)
				}
			}, func(b *bench) { b.stopAfter = after })
		})
	}
}
