package smoke_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/smoke"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// everyClaimWins is a store that refuses no claim of a row that another holds.
type everyClaimWins struct{ pipeline.Store }

func (s everyClaimWins) Claim(ctx context.Context, w pipeline.ClaimWrite) (pipeline.Task, error) {
	row, err := s.Store.Claim(ctx, w)
	if old, refused := pipeline.Old(err); refused && old != nil && old.Status == pipeline.TaskClaimed {
		return *old, nil
	}
	return row, err
}

// noFence is a store that says that a late worker's writes landed.
type noFence struct{ pipeline.Store }

func (s noFence) Renew(ctx context.Context, w pipeline.RenewWrite) (pipeline.Task, error) {
	row, err := s.Store.Renew(ctx, w)
	if old, refused := pipeline.Old(err); refused && old != nil && old.Status.Ended() {
		return *old, nil
	}
	return row, err
}

// forgetful is a store that has no reply for who works, so that everything is asked again.
type forgetful struct{ pipeline.Store }

func (forgetful) Replies(context.Context, []pipeline.ReplyKey) (map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey, error) {
	return nil, nil, nil
}

// uncounted is a store that counts no attempt that was lost.
type uncounted struct{ pipeline.Store }

func (s uncounted) Expire(ctx context.Context, w pipeline.ExpireWrite) (pipeline.Task, error) {
	w.Verdict.Status, w.Verdict.Attempts, w.Verdict.Losses = pipeline.TaskPending, 0, 0
	return s.Store.Expire(ctx, w)
}

// noRecords is a store that loses what a lost attempt left.
type noRecords struct{ pipeline.Store }

func (s noRecords) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	if r, err := pipeline.Decode[pipeline.Record](body, key); err == nil && r.Ender == pipeline.ExpiredBy {
		return nil
	}
	return s.Store.PutItem(ctx, job, key, body)
}

// slowToCancel is a store whose readers see a cancelled job run on for a while.
type slowToCancel struct {
	pipeline.Store
	now func() pipeline.Instant
}

func (s slowToCancel) Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	job, err := s.Store.Job(ctx, id)
	if job.Status == pipeline.JobCancelling && s.now().Sub(job.CancelledAt) < 5*time.Second {
		job.Status = pipeline.JobRunning
	}
	return job, err
}

// neverCloses is a store that says that rows were closed which stay as they are.
type neverCloses struct{ pipeline.Store }

func (s neverCloses) Close(_ context.Context, w pipeline.CloseWrite) (pipeline.Task, error) {
	return w.Seen, nil
}

// lossy is a store that says that replies were stored which were not.
type lossy struct{ pipeline.Store }

func (lossy) PutReply(_ context.Context, r pipeline.Reply) (pipeline.Reply, error) { return r, nil }

// silentCancel is a store that loses at which stage a task was cancelled.
type silentCancel struct{ pipeline.Store }

func (s silentCancel) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	if strings.HasSuffix(key, "#cancelled") {
		return nil
	}
	return s.Store.PutItem(ctx, job, key, body)
}

// vagueResults are blobs whose results do not name what is missing.
type vagueResults struct{ pipeline.Blobs }

func (v vagueResults) PutBlob(ctx context.Context, key string, body []byte) error {
	if r, err := pipeline.Decode[pipeline.Result](body, key); err == nil && strings.HasPrefix(key, "result/") {
		r.Missing = nil
		body = pipeline.Encode(r)
	}
	return v.Blobs.PutBlob(ctx, key, body)
}

// noLetters is a queue whose dead letters go nowhere.
type noLetters struct{ pipeline.Queue }

func (noLetters) Bury(context.Context, pipeline.DeadLetter) error { return nil }

// bareLetters is a queue whose dead letters say nothing of the attempts.
type bareLetters struct{ pipeline.Queue }

func (q bareLetters) Bury(ctx context.Context, l pipeline.DeadLetter) error {
	l.Context = nil
	return q.Queue.Bury(ctx, l)
}

func (q bareLetters) Unbury(ctx context.Context, job pipeline.JobID) (int, error) {
	return unbury(ctx, q.Queue, job)
}

func unbury(ctx context.Context, q pipeline.Queue, job pipeline.JobID) (int, error) {
	return q.(interface {
		Unbury(context.Context, pipeline.JobID) (int, error)
	}).Unbury(ctx, job)
}

// stickyLetters is a queue whose dead letters cannot be removed.
type stickyLetters struct{ pipeline.Queue }

func stored(wrap func(pipeline.Store) pipeline.Store) func(*bench) {
	return func(b *bench) { b.store = wrap }
}

func queued(wrap func(pipeline.Queue) pipeline.Queue) func(*bench) {
	return func(b *bench) { b.work = wrap }
}

// Each promise is broken once, and the line that speaks of it says so.
func TestAStackThatBreaksAPromise(t *testing.T) {
	for _, c := range []struct {
		name, check, says string
		broken            func(*bench)
	}{
		{"two win one claim", "claim race", "won twice", stored(func(s pipeline.Store) pipeline.Store { return everyClaimWins{s} })},
		{"a late write lands", "claim race", "late worker", stored(func(s pipeline.Store) pipeline.Store { return noFence{s} })},
		{"a document is split and nobody finishes its cells", "stack", "missing", func(b *bench) {
			b.model = scripted{clock: b.clock, name: "offline", fails: &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Refused, "no"), Err: errRefused}}
		}},
		{"no reaper", "killed worker", "Nothing sweeps", func(b *bench) { b.without["reaper"] = true }},
		{"a stored answer is asked for again", "killed worker", "were asked for again", func(b *bench) {
			b.theirs = func(back *wiring.Backend) *wiring.Backend {
				own := *back
				own.Store = forgetful{own.Store}
				return &own
			}
		}},
		{"a lost attempt leaves no record", "killed worker", "each with a record", stored(func(s pipeline.Store) pipeline.Store { return noRecords{s} })},
		{"more is asked again than was in flight", "killed worker", "calls were in flight", func(b *bench) {
			b.mine = func(back *wiring.Backend) *wiring.Backend {
				own := *back
				own.Store = lossy{own.Store}
				return &own
			}
		}},
		{"an attempt at a poison leaves no record", "poison", "0 attempts of 3", stored(func(s pipeline.Store) pipeline.Store { return noRecords{s} })},
		{"the result does not name what is missing", "poison", "the result names", func(b *bench) {
			b.theirs = func(back *wiring.Backend) *wiring.Backend {
				own := *back
				own.Blobs = vagueResults{own.Blobs}
				return &own
			}
		}},
		{"nothing ends a poison", "poison", "nothing ends it", stored(func(s pipeline.Store) pipeline.Store { return uncounted{s} })},
		{"the dead letter does not arrive", "poison", "it did not come", queued(func(q pipeline.Queue) pipeline.Queue { return noLetters{q} })},
		{"the dead letter says nothing of the attempts", "poison", "0 attempts in it", queued(func(q pipeline.Queue) pipeline.Queue { return bareLetters{q} })},
		{"the dead letter stays", "poison", "cannot be removed", queued(func(q pipeline.Queue) pipeline.Queue { return stickyLetters{q} })},
		{"calls begin after a cancel", "cancel", "calls began", func(b *bench) {
			b.stages, b.calls = 6, 2
			b.store = func(s pipeline.Store) pipeline.Store { return slowToCancel{s, b.clock.Now} }
		}},
		{"a cancelled job's rows stay open", "cancel", "claims since", func(b *bench) {
			b.store = func(s pipeline.Store) pipeline.Store { return slowToCancel{neverCloses{s}, b.clock.Now} }
		}},
		{"a cancelled chunk does not say how far it was", "cancel", "say at which stage", stored(func(s pipeline.Store) pipeline.Store { return silentCancel{s} })},
		{"a job stays", "clean", "is still there", func(b *bench) { b.forget = func(pipeline.Job) error { return nil } }},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(b *bench, r smoke.Report, err error) {
				if err != nil {
					b.Fatal(err)
				}
				b.breaks(r, c.check, c.says)
			}, c.broken)
		})
	}
}

func TestWhereTheCanaryDoesNotBegin(t *testing.T) {
	submits := func(tenant string) func(*bench) {
		return func(b *bench) {
			b.before = func(ctx context.Context, b *bench) error {
				s := wiring.New(b.back, wiring.Config{Tenant: tenant, Worker: "desk", Policy: b.policy, Clock: b.clock})
				_, _, err := s.Submitter.Submit(ctx, submit.Submission{
					Name: "theirs.txt", Source: []byte(text(1)), Definition: pipelinetest.NewDefinition(1, 1), Model: b.offline("", 0).Info(), Hold: true,
				})
				return err
			}
		}
	}
	for _, c := range []struct {
		name, says string
		edits      []func(*bench)
	}{
		{"somebody else's job is open", "tenant theirs is planned", []func(*bench){submits("theirs")}},
		{"the clock is wrong", "clock differs", []func(*bench){func(b *bench) { b.skew = 3 * time.Second }}},
		{"another canary is at work", "another canary", []func(*bench){submits(smoke.Tenant), func(b *bench) { b.cfg.Beside = true }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(b *bench, r smoke.Report, err error) {
				if err == nil || len(r.Lines) > 0 {
					b.Fatalf("got error %v and %d lines, want that it did not begin", err, len(r.Lines))
				}
				says(b, err.Error(), c.says)
			}, c.edits...)
		})
	}
	t.Run("what a killed one left goes after an hour, and not before: it may be at work between two checks", func(t *testing.T) {
		for after, stay := range map[time.Duration]int{59 * time.Minute: 1, 61 * time.Minute: 0} {
			in(t, func(b *bench, r smoke.Report, err error) {
				jobs, _, failed := b.back.Store.Jobs(t.Context(), smoke.Tenant, "", 100)
				if err != nil || failed != nil || len(jobs) != stay || !r.Held() {
					b.Errorf("after %v: %d jobs are there, held %v, error %v, %v; want %d", after, len(jobs), r.Held(), err, failed, stay)
				}
			}, func(b *bench) {
				b.before = func(ctx context.Context, b *bench) error {
					stop := b.run(ctx)
					s := wiring.New(b.back, wiring.Config{Tenant: smoke.Tenant, Worker: "desk", Policy: b.policy, Clock: b.clock})
					_, _, err := s.Submitter.Submit(ctx, submit.Submission{
						Name: "left.txt", Source: []byte(text(1)), Definition: pipelinetest.NewDefinition(1, 1), Model: b.offline("", 0).Info(),
					})
					return errors.Join(err, b.clock.Sleep(ctx, after), func() error { stop(); return nil }())
				}
			})
		}
	})
	t.Run("beside it, if that is meant", func(t *testing.T) {
		in(t, func(b *bench, r smoke.Report, err error) {
			if err != nil || !r.Held() {
				b.Errorf("got error %v, want every promise kept", err)
			}
			if jobs, _, err := b.back.Store.Jobs(context.Background(), "theirs", "", 10); err != nil || len(jobs) != 1 {
				b.Errorf("%d jobs of the other tenant are left, error %v; want its one", len(jobs), err)
			}
		}, submits("theirs"), func(b *bench) { b.cfg.Beside = true })
	})
}

func TestAStackWithoutWorkers(t *testing.T) {
	for _, part := range []string{"control", "work"} {
		t.Run(part, func(t *testing.T) {
			in(t, func(b *bench, r smoke.Report, err error) {
				b.breaks(r, "stack", "no worker takes from the "+part+" queue")
				for _, line := range r.Lines {
					if line.Check != "stack" && line.Check != "clean" {
						b.Errorf("it went on with %q, which waits for the same", line.Check)
					}
				}
				if r.Left > 0 {
					b.Errorf("%d jobs are left", r.Left)
				}
			}, func(b *bench) { b.without[part] = true })
		})
	}
}

// plain is a queue that cannot leave messages to other workers, like SQS.
type plain struct{ pipeline.Queue }

// A stack whose workers have another model cannot be asked anything that costs: the canary's own processes do the work.
func TestAStackWithAnotherModel(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	in(t, func(b *bench, r smoke.Report, err error) {
		if err != nil || !r.Held() || r.Foreign == "" {
			b.Errorf("got error %v and %q, want every promise kept, and what model it is", err, r.Foreign)
		}
		if asked > 0 || r.Calls > 0 {
			b.Errorf("the stack's model was asked %d times, %d on record; want 0", asked, r.Calls)
		}
	}, func(b *bench) {
		b.theirs = func(back *wiring.Backend) *wiring.Backend {
			own := *back
			own.Queues.Work = plain{own.Queues.Work}
			return &own
		}
		b.model = scripted{clock: b.clock, name: "dear", asks: func(pipeline.ReplyKey) {
			mu.Lock()
			defer mu.Unlock()
			asked++
		}}
	})
}

func TestAModelThatCostsIsRefused(t *testing.T) {
	cfg := smoke.Config{Clock: pipeline.NewRealClock(), Policy: pipeline.DefaultPolicy(), Backend: wiring.InMemory(pipeline.DefaultPolicy(), pipeline.NewRealClock())}
	cfg.Model = func(string, time.Duration) pipeline.Model { return dear{} }
	if _, err := smoke.Run(t.Context(), t.Context(), cfg); err == nil {
		t.Error("it began")
	} else {
		says(t, err.Error(), "costs money")
	}
}

// dear is a model that costs something.
type dear struct{ pipeline.Model }

func (dear) Info() pipeline.ModelInfo { return pipeline.ModelInfo{Name: "dear", Version: "1"} }
