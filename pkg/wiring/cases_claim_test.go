package wiring_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// The writes of an old holder, delivered long after: refused, the new holder undisturbed.
func TestCaseD05LateWritesUnderANewerClaim(t *testing.T) {
	for _, op := range []string{"Renew", "End", "Checkpoint"} {
		t.Run("a "+op+" that arrives under the next claim", func(t *testing.T) {
			in(t, func(w *world) {
				w.model.takes = 4 * time.Second
				w.model.react = func(n int, _ pipeline.Request) error {
					if op == "End" && n <= 2*w.policy.MaxTries { // so that there is something to do for the next claim
						return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Ambiguous, "scripted")}
					}
					return nil
				}
				late := pipelinetest.NewLate(1, op)
				old := w.startWith("old", func(p *process) pipelinetest.Around {
					return func(ctx context.Context, o pipelinetest.Op, do func(context.Context) error) error {
						if o.Name == op && strings.Contains(o.On, "work#") {
							err := late.Around(ctx, o, do)
							if err == pipelinetest.ErrLost {
								p.freeze()
							}
							return err
						}
						return do(ctx)
					}
				}, func(c *wiring.Config) { c.Claims = 1 })
				job := w.submit(text(1))
				for !old.frozen() {
					time.Sleep(time.Second)
				}
				w.start("new", nil)
				row := pipeline.Task{}
				for row.Generation < 2 || row.Status != pipeline.TaskClaimed && !row.Status.Ended() {
					time.Sleep(time.Second)
					for _, r := range w.rows(job.ID) {
						if r.ID.Kind() == pipeline.TaskWork {
							row = r
						}
					}
					if w.clock.Mono() > time.Hour {
						t.Fatalf("nobody else claimed it: %+v", row)
					}
				}
				for _, err := range late.Release(w.ctx) {
					if err == nil {
						t.Error("it was accepted under the next claim")
					}
				}
				now, err := w.back.Store.Task(w.ctx, row.Ref)
				w.must(err)
				if now.Generation < 2 || now.ClaimedBy != "new" && now.EndedBy != pipeline.ExpiredBy {
					t.Errorf("the row shows %s at generation %d, want the new holder", now.ClaimedBy, now.Generation)
				}
				old.thaw()
				w.ends(job.ID, time.Hour, pipeline.JobCompleted)
				w.complete(job.ID, 1)
				if row, err := w.back.Store.Task(w.ctx, row.Ref); err != nil || row.Generation > 3 || row.Attempts > 2 {
					t.Errorf("got generation %d, attempt %d (%v), want the next claim undisturbed", row.Generation, row.Attempts, err)
				}
			})
		})
	}
}

// Everything that comes back from a chunk is larger than an item: it is kept beside the rows, and rows stay small.
func TestCaseD08StateThatGrows(t *testing.T) {
	in(t, func(w *world) {
		long := strings.Repeat("something went wrong with it; ", 400)
		var n atomic.Int64
		w.model.react = func(int, pipeline.Request) error {
			if n.Add(1)%2 == 0 {
				return nil
			}
			f := pipeline.Fail(pipeline.Unavailable, "%s", long)
			f.Detail, f.Code = long, long
			return &pipeline.ModelError{Failure: f}
		}
		w.start("worker", nil)
		job := w.submit(text(40))
		w.ends(job.ID, 20*time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, 40)
		for _, row := range w.rows(job.ID) {
			if size := len(pipeline.Encode(row)); size > 3<<10 {
				t.Errorf("%s has %d bytes", row.ID, size)
			}
			items, err := pipeline.AllItems(w.ctx, w.back.Store, job.ID, pipeline.RecordsPrefix(row.ID))
			w.must(err)
			for _, item := range items {
				if len(item.Body) > pipeline.MaxItem {
					t.Errorf("%s has %d bytes", item.Key, len(item.Body))
				}
			}
		}
		w.asks(int(n.Load()) / 2)
	})
}

// A due index that lags, and shows what is over: nothing is done on its word.
func TestCaseD11IndexThatLags(t *testing.T) {
	in(t, func(w *world) {
		type seen struct {
			at   pipeline.Instant
			rows []pipeline.Task
		}
		var mu sync.Mutex
		var past [pipeline.DueShards][]seen
		store := &lagging{Store: w.back.Store, due: func(shard int, rows []pipeline.Task) []pipeline.Task {
			mu.Lock()
			defer mu.Unlock()
			now := w.clock.Now()
			past[shard] = append(past[shard], seen{now, rows})
			var then []pipeline.Task
			for _, s := range past[shard] {
				if s.at <= now.Add(-30*time.Second) {
					then = s.rows
				}
			}
			return then
		}}
		w.back.Store = store
		w.model.takes = 3 * time.Second
		w.start("one", nil)
		w.start("two", nil)
		job := w.submit(text(12))
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		w.complete(job.ID, 12)
		w.asks(0)
		for _, row := range w.rows(job.ID) {
			if row.Generation > 1 || row.Losses > 0 {
				t.Errorf("%s was claimed %d times, lost %d: an old view was acted on", row.ID, row.Generation, row.Losses)
			}
		}
		w.quiet()
	})
}

// lagging is a store whose due index shows what it showed a while ago.
type lagging struct {
	pipeline.Store
	due func(shard int, rows []pipeline.Task) []pipeline.Task
}

func (l *lagging) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	rows, next, err := l.Store.Due(ctx, shard, now, cursor)
	if err != nil {
		return nil, "", err
	}
	return l.due(shard, rows), next, nil
}

// A chunk that takes every worker along: given up within its attempts, the job says so, and nobody looks at it again.
func TestCaseD13ChunkThatKillsItsWorkers(t *testing.T) {
	in(t, func(w *world) {
		var current atomic.Pointer[process]
		w.model.react = func(_ int, r pipeline.Request) error {
			if strings.Contains(r.Shared, "Clause number 2.") && strings.Contains(r.Prompt, "Question 2.1") {
				current.Load().freeze()
			}
			return nil
		}
		start := func(n int) *process {
			p := w.start(fmt.Sprint("worker-", n), nil)
			current.Store(p)
			return p
		}
		p := start(0)
		job := w.submit(text(chunks))
		deaths := 0
		for n := 1; n < 60 && !w.job(job.ID).Status.Ended(); n++ {
			time.Sleep(2 * time.Minute)
			if p.frozen() {
				deaths++
				p.kill()
				p = start(n)
			}
		}
		w.ends(job.ID, time.Minute, pipeline.JobPartial)
		r := w.result(job.ID)
		for _, cell := range r.Missing {
			if cell.Chunk != 1 || cell.Failure.Kind != pipeline.Lost || cell.Failure.Stage == "" {
				t.Errorf("got %+v missing, want chunk 1 alone, lost, with its stage", cell)
			}
		}
		if len(r.Missing) != 4 || deaths != w.policy.MaxAttempts {
			t.Errorf("got %d cells missing after %d deaths, want 4 after %d", len(r.Missing), deaths, w.policy.MaxAttempts)
		}
		w.sound(job.ID)
		asked, _, _ := w.model.count()
		time.Sleep(time.Hour)
		if now, _, _ := w.model.count(); now != asked || p.frozen() {
			t.Errorf("asked %d times more after it was given up", now-asked)
		}
		for shard := range pipeline.DueShards {
			rows, _, err := w.back.Store.Due(w.ctx, shard, w.clock.Now(), "")
			if err != nil || len(rows) != 0 {
				t.Errorf("the reaper still looks at %d rows (%v)", len(rows), err)
			}
		}
		w.quiet()
	})
}

// Thirty short-lived workers share one quota: it is the store's, and no restart begins it anew.
func TestCaseL05LimitsOutliveTheProcess(t *testing.T) {
	in(t, func(w *world) {
		const quota = 60_000
		var mu sync.Mutex
		type use struct {
			at    time.Duration
			units int
		}
		var used []use
		m := &metered{model: w.model, quota: quota, on: func(units int) func(int) {
			mu.Lock()
			defer mu.Unlock()
			i := len(used)
			used = append(used, use{w.clock.Mono(), units})
			return func(units int) {
				mu.Lock()
				defer mu.Unlock()
				used[i].units = units
			}
		}}
		start := func(n int) *process {
			return w.start(fmt.Sprint("worker-", n), nil, func(c *wiring.Config) { c.Model = m })
		}
		var procs []*process
		for n := range 10 {
			procs = append(procs, start(n))
		}
		job := w.submit(text(60), func(s *submit.Submission) { s.Model = m.Info() })
		for n := 10; n < 40 && !w.job(job.ID).Status.Ended(); n++ {
			time.Sleep(7 * time.Second)
			i := n % len(procs)
			procs[i].kill()
			procs[i] = start(n)
		}
		for !w.job(job.ID).Status.Ended() && w.clock.Mono() < 20*time.Hour {
			time.Sleep(time.Minute)
		}
		w.sound(job.ID) // a chunk that was lost three times by so many kills may be missing
		burst := int(w.policy.LimiterBurst.Minutes() * quota)
		for i, from := range used {
			sum := 0
			for _, u := range used[i:] {
				if u.at-from.at >= time.Minute {
					break
				}
				sum += u.units
			}
			if most := quota + burst + 2000; sum > most { // and one call
				t.Fatalf("got %d units in the minute from %v, want at most the quota and one burst, %d", sum, from.at, most)
			}
		}
		if len(used) < 200 {
			t.Errorf("got %d calls", len(used))
		}
	})
}

// metered is a model with a quota, that tells what each call reserves at the provider, and then what it used.
type metered struct {
	*model
	quota int
	on    func(reserves int) (uses func(int))
}

func (m *metered) Info() pipeline.ModelInfo {
	info := m.model.Info()
	info.TokensPerMinute = m.quota
	return info
}

func (m *metered) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	uses := m.on(r.InputTokens() + r.MaxTokens)
	response, err := m.model.Complete(ctx, r)
	if err == nil {
		uses(response.Usage.Input + response.Usage.Output)
	}
	return response, err
}
