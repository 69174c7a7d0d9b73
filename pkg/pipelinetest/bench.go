package pipelinetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// bench is one subtest's view of a store: a job of its own, and the questions that promises ask.
type bench struct {
	*testing.T
	Harness
	ctx context.Context
	job pipeline.JobID
}

func newBench(t *testing.T, h Harness) *bench {
	t.Helper()
	return &bench{T: t, Harness: h, ctx: t.Context(), job: unique(t)}
}

// unique is a job id that no other subtest has.
func unique(t *testing.T) pipeline.JobID {
	sum := sha256.Sum256([]byte(t.Name()))
	return pipeline.JobID(hex.EncodeToString(sum[:6]) + "-1")
}

// other is the same job for a subtest of a subtest.
func (b *bench) run(name string, f func(b *bench)) {
	b.T.Run(name, func(t *testing.T) { f(newBench(t, b.Harness)) })
}

// row makes a row of this job and puts it.
func (b *bench) row(edits ...func(*pipeline.Task)) pipeline.Task {
	b.Helper()
	row := NewRow(b.job, pipeline.WorkTask(1), edits...)
	b.put(row)
	return row
}

func (b *bench) put(rows ...pipeline.Task) {
	b.Helper()
	for len(rows) > 0 {
		n := min(len(rows), pipeline.MaxWrite)
		unprocessed, err := b.Store.PutTasks(b.ctx, rows[:n])
		if err != nil || len(unprocessed) > 0 {
			b.Fatalf("put %d rows: %d unprocessed, %v", n, len(unprocessed), err)
		}
		rows = rows[n:]
	}
}

func (b *bench) read(ref pipeline.Ref) pipeline.Task {
	b.Helper()
	row, err := b.Store.Task(b.ctx, ref)
	b.must(err)
	return row
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// claim claims the row as it stands for a worker, and must win.
func (b *bench) claim(row pipeline.Task, worker string, now pipeline.Instant) pipeline.Task {
	b.Helper()
	claimed, err := b.Store.Claim(b.ctx, ClaimOf(row, worker, now))
	b.must(err)
	return claimed
}

// answers checks what a write returned and what stands afterwards.
func (b *bench) answers(got pipeline.Task, err error, want pipeline.Task) {
	b.Helper()
	b.must(err)
	b.same("the answer", got, want)
	b.stands(want)
}

// stands checks the stored row.
func (b *bench) stands(want pipeline.Task) {
	b.Helper()
	b.same("the row", b.read(want.Ref), want)
}

func (b *bench) same(what string, got, want pipeline.Task) {
	b.Helper()
	if !reflect.DeepEqual(plain(got), plain(want)) {
		b.Errorf("%s is not as it must be\n got %s\nwant %s", what, pipeline.Encode(plain(got)), pipeline.Encode(plain(want)))
	}
}

// plain takes an empty list and none for the same.
func plain(row pipeline.Task) pipeline.Task {
	if len(row.Bodies) == 0 {
		row.Bodies = nil
	}
	return row
}

// refused checks that a write was refused, showed the row that stands, and changed nothing.
func (b *bench) refused(err error, stands pipeline.Task) {
	b.Helper()
	if !errors.Is(err, pipeline.ErrFenced) {
		b.Errorf("got error %v, want a refusal", err)
	}
	old, ok := pipeline.Old(err)
	if !ok || old == nil {
		b.Errorf("got error %v, want a ConditionError that shows the row", err)
	} else {
		b.same("the row that was shown", *old, stands)
	}
	b.stands(stands)
}

// missing checks that a write was refused because there is no row, and that there still is none.
func (b *bench) missing(err error, ref pipeline.Ref) {
	b.Helper()
	if !errors.Is(err, pipeline.ErrFenced) {
		b.Errorf("got error %v, want a refusal", err)
	}
	if old, ok := pipeline.Old(err); !ok || old != nil {
		b.Errorf("got error %v that shows %v, want a ConditionError without a row", err, old)
	}
	if _, err := b.Store.Task(b.ctx, ref); !errors.Is(err, pipeline.ErrNotFound) {
		b.Errorf("reading the row: got error %v, want ErrNotFound: a deleted row must not come back", err)
	}
}

func (b *bench) fails(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("got error %v, want %v", err, want)
	}
}

// due is this job's rows that are due, over all shards and pages, most overdue first within a shard.
func (b *bench) due(now pipeline.Instant) []pipeline.Task {
	b.Helper()
	var all []pipeline.Task
	for shard := range pipeline.DueShards {
		rows, _ := b.dueShard(shard, now)
		all = append(all, rows...)
	}
	return all
}

func (b *bench) dueShard(shard int, now pipeline.Instant) (mine []pipeline.Task, pages int) {
	b.Helper()
	cursor := ""
	for {
		rows, next, err := b.Store.Due(b.ctx, shard, now, cursor)
		b.must(err)
		pages++
		for _, row := range rows {
			if row.DueShard() != shard {
				b.Errorf("%s is in shard %d, want %d", row.Ref, shard, row.DueShard())
			}
			if row.Job == b.job {
				mine = append(mine, row)
			}
		}
		if next == "" {
			return mine, pages
		}
		cursor = next
	}
}

// listed checks whether the row is in the due index, as often as the index may lag.
func (b *bench) listed(row pipeline.Task, now pipeline.Instant, want bool) {
	b.Helper()
	b.eventually(func() bool {
		for _, due := range b.due(now) {
			if due.ID == row.ID {
				return want
			}
		}
		return !want
	}, fmt.Sprintf("%s (%s, due %s) at %s: listed must be %v", row.ID, row.Status, row.DueAt, now, want))
}

// eventually checks now, and again while the index may lag.
func (b *bench) eventually(ok func() bool, what string) {
	b.Helper()
	for begin := time.Now(); !ok(); {
		if time.Since(begin) >= b.Lag {
			b.Error(what)
			return
		}
		time.Sleep(b.Lag / 50)
	}
}

// steadily repeats what a busy store did not do.
func steadily(do func() error) error {
	err := do()
	for n := 0; n < 1000 && (errors.Is(err, pipeline.ErrBusy) || errors.Is(err, pipeline.ErrConflict)); n++ {
		err = do()
	}
	return err
}

// together runs n of them at once and waits.
func together(n int, do func(i int)) {
	start := make(chan struct{})
	var group pipeline.Group
	for i := range n {
		group.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	group.Wait()
}
