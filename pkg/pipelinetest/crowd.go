package pipelinetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// What many do at once must come to what they would have done one after the other.
var crowdPromises = []promise{
	{"of many who put the same item or reply, one wins and all learn which", crowdPutsOnce},
	{"of many who change a job, one wins", crowdSetsJob},
	{"money reserved by many at once never exceeds the ceiling", crowdReserves},
	{"slots taken by many at once follow one another", crowdTakesSlots},
	{"a finding never appears behind a cursor that was returned", crowdFeeds},
	{"many workers on the same rows lose no claim and count each once", crowdWorks},
}

func crowdPutsOnce(t *testing.T, h Harness) {
	b := newBench(t, h)
	const n = 32
	bodies, texts := make([]string, n), make([]string, n)
	errs := make([]error, 2*n)
	together(n, func(i int) {
		errs[i] = steadily(func() error {
			stands, err := h.Store.PutItemOnce(b.ctx, b.job, "key", fmt.Append(nil, i))
			bodies[i] = string(stands)
			return err
		})
		errs[n+i] = steadily(func() error {
			stands, err := h.Store.PutReply(b.ctx, newReply(pipeline.ReplyKey(b.job), fmt.Sprint(i)))
			texts[i] = stands.Text
			return err
		})
	})
	b.must(errors.Join(errs...))
	slices.Sort(bodies)
	slices.Sort(texts)
	if bodies[0] != bodies[n-1] || texts[0] != texts[n-1] {
		t.Errorf("got bodies %v and texts %v, want one of each", slices.Compact(bodies), slices.Compact(texts))
	}
}

func crowdSetsJob(t *testing.T, h Harness) {
	b := newBench(t, h)
	job := submit(b)
	const n = 32
	won := make([]bool, n)
	together(n, func(i int) {
		next := job
		next.Status, next.Name = pipeline.JobPaused, fmt.Sprint(i)
		err := steadily(func() error { _, err := h.Store.SetJob(b.ctx, job, next); return err })
		won[i] = err == nil
	})
	stands, err := h.Store.Job(b.ctx, b.job)
	b.must(err)
	for i, w := range won {
		if w != (stands.Name == fmt.Sprint(i)) {
			t.Errorf("%d won: %v, and the job is that of %s", i, w, stands.Name)
		}
	}
}

func crowdReserves(t *testing.T, h Harness) {
	b := opened(t, h)
	const n = 32
	errs := make([]error, n)
	together(n, func(i int) {
		errs[i] = steadily(func() error {
			_, err := h.Store.Reserve(b.ctx, b.job, reservation(int64(i), 1, 7))
			return err
		})
	})
	taken := 0
	for _, err := range errs {
		if err == nil {
			taken++
		} else {
			b.fails(err, pipeline.ErrCeiling)
		}
	}
	got, err := h.Store.Budget(b.ctx, b.job)
	b.must(err)
	if taken != 14 || got.Remaining != 2 || len(got.Open) != 14 {
		t.Errorf("got %d reserved, %d open, %d remaining; want 14, 14, 2", taken, len(got.Open), got.Remaining)
	}
}

func crowdTakesSlots(t *testing.T, h Harness) {
	b := newBench(t, h)
	const n = 32
	starts := make([]pipeline.Instant, n)
	errs := make([]error, n)
	together(n, func(i int) {
		w := pipeline.SlotWrite{Model: string(b.job), Cost: second, Horizon: time.Hour, Now: T0}
		errs[i] = steadily(func() (err error) { starts[i], err = h.Store.TakeSlot(b.ctx, w); return err })
	})
	b.must(errors.Join(errs...))
	slices.Sort(starts)
	for i, start := range starts {
		if want := T0.Add(time.Duration(i) * second); start != want {
			t.Fatalf("slot %d starts at %s, want %s", i, start, want)
		}
	}
}

func crowdFeeds(t *testing.T, h Harness) {
	b := newBench(t, h)
	const writers, each = 8, 10
	var got []string
	var readErr error
	errs := make([]error, writers)
	done := make(chan struct{})
	var reader pipeline.Group
	reader.Go(func() {
		var after int64
		for last := false; ; {
			groups, err := h.Store.Findings(b.ctx, b.job, after, 3)
			if err != nil {
				readErr = err
				return
			}
			for _, g := range groups {
				after = g.Seq
				got = append(got, g.Findings[0].ID)
			}
			if len(groups) > 0 {
				continue
			}
			if last {
				return
			}
			select {
			case <-done:
				last = true
			default:
			}
		}
	})
	together(writers, func(i int) {
		for stage := range each {
			g := pipeline.FindingGroup{Job: b.job, Task: pipeline.WorkTask(i), Stage: stage, Generation: 1, At: T0, Findings: []pipeline.Finding{{ID: fmt.Sprintf("%02d-%02d", i, stage)}}}
			errs[i] = errors.Join(errs[i], steadily(func() error { return h.Store.PutFindings(b.ctx, g) }))
		}
	})
	close(done)
	reader.Wait()
	b.must(errors.Join(append(errs, readErr)...))
	slices.Sort(got)
	if len(got) != writers*each || len(slices.Compact(got)) != writers*each {
		t.Errorf("the reader saw %d groups, want each of %d once", len(got), writers*each)
	}
}

func crowdWorks(t *testing.T, h Harness) {
	b := newBench(t, h)
	const workers, rows, rounds = 8, 5, 12
	for n := range rows {
		b.put(NewRow(b.job, pipeline.WorkTask(n), func(row *pipeline.Task) { row.Stages = workers * rounds }))
	}
	var mu sync.Mutex
	claims := map[pipeline.TaskID]int{}
	errs := make([]error, workers)
	together(workers, func(i int) {
		for round := range rounds {
			id, err := crowdStep(b, i, round%rows)
			errs[i] = errors.Join(errs[i], err)
			mu.Lock()
			claims[id]++
			mu.Unlock()
		}
	})
	b.must(errors.Join(errs...))
	delete(claims, "")
	for n := range rows {
		row := b.read(pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(n)})
		if row.Generation != int64(claims[row.ID]) || row.Accepted != claims[row.ID] || row.Status != pipeline.TaskPending {
			t.Errorf("%s: got generation %d, accepted %d, %s; want %d claims, each with a stage, pending", row.ID, row.Generation, row.Accepted, row.Status, claims[row.ID])
		}
		for stage := 1; stage <= row.Accepted; stage++ {
			if row.Body(stage) != int64(stage) {
				t.Errorf("%s: stage %d is of generation %d, want %d", row.ID, stage, row.Body(stage), stage)
			}
		}
	}
}

// crowdStep claims a row, renews, accepts a stage and ends; "" if another holds it.
func crowdStep(b *bench, worker, n int) (pipeline.TaskID, error) {
	var row pipeline.Task
	step := func(do func() (pipeline.Task, error)) error {
		return steadily(func() error {
			next, err := do()
			if err == nil {
				row = next
			}
			return err
		})
	}
	err := step(func() (pipeline.Task, error) {
		return b.Store.Task(b.ctx, pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(n)})
	})
	if err != nil {
		return "", err
	}
	w := ClaimOf(row, fmt.Sprintf("w%d", worker), T0)
	w.MaxAttempts = 1000
	err = step(func() (pipeline.Task, error) { return b.Store.Claim(b.ctx, w) })
	if errors.Is(err, pipeline.ErrFenced) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	fence := pipeline.Claim{Task: row}.Fence()
	return row.ID, errors.Join(
		step(func() (pipeline.Task, error) {
			return b.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: fence, Expires: row.ExpiresAt + 1, Stage: row.Accepted + 1})
		}),
		step(func() (pipeline.Task, error) {
			return b.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: fence, Stage: row.Accepted + 1})
		}),
		step(func() (pipeline.Task, error) {
			return b.Store.End(b.ctx, EndOf(row, pipeline.Verdict{Status: pipeline.TaskPending, Attempts: row.Attempts}, pipeline.Failure{}, T0))
		}))
}
