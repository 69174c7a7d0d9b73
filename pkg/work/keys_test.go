package work_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/work"
)

// Keys of what a job may have stored: those of an open stage too, of which nothing but the replies is left.
func TestKeys(t *testing.T) {
	keysOf := func(b *bench, r reviewer) []pipeline.ReplyKey {
		b.Helper()
		rows, err := pipeline.AllTasks(b.ctx, b.store, theJob)
		b.must(err)
		items, err := pipeline.AllItems(b.ctx, b.store, theJob, "")
		b.must(err)
		job, err := b.store.Job(b.ctx, theJob)
		b.must(err)
		stages := work.NewStages(work.StagesConfig{Reviewer: r, Items: b.store, Replies: b.store, Blobs: b.store, Clock: b.clock})
		keys, err := stages.Keys(b.ctx, job, rows, items)
		b.must(err)
		return keys
	}
	asks := func(b *bench, calls ...string) (keys []pipeline.ReplyKey) {
		b.Helper()
		job, err := b.store.Job(b.ctx, theJob)
		b.must(err)
		for _, call := range calls {
			keys = append(keys, pipeline.KeyOf(job.Tenant, job.Model, job.Sample, pipeline.Request{Prompt: call}))
		}
		return keys
	}
	same := func(b *bench, when string, got, want []pipeline.ReplyKey) {
		b.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			b.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	in(t, "before its first stage is accepted it is what that asks, and after it what its body names and the next asks", func(b *bench) {
		_, r, edit := b.stages(func(q pipeline.Question) pipeline.Answer {
			if q.Call.ID == "s2c2" {
				return pipeline.Answer{Failure: pipeline.Fail(pipeline.Ambiguous, "no answer")}
			}
			return b.stored(q)
		})
		b.rung(0, two)
		same(b, "nothing was asked", keysOf(b, r), asks(b, "s1c1", "s1c2"))
		b.start("worker", nil, edit)
		b.pass(time.Second)
		if row := b.read(chunk0); row.Accepted != 1 || row.Status == pipeline.TaskDone {
			b.Fatalf("the row is %s with %d stages accepted, want one of two", row.Status, row.Accepted)
		}
		same(b, "a stage is open", keysOf(b, r), append(asks(b, "s2c1", "s2c2"), "key-s1c1", "key-s1c2"))
	})
	in(t, "of a job that is done it is what its bodies name, of whichever attempt", func(b *bench) {
		_, r, edit := b.stages(b.stored)
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskDone)
		body := pipeline.StageBody{Stage: 1, Cells: []pipeline.Cell{{Call: "s1c1", Key: "key-of-a-zombie"}, {Call: "s1c2"}}}
		b.must(b.store.PutItem(b.ctx, theJob, pipeline.BodyKey(chunk0.ID, 1, 9), pipeline.Encode(body)))
		b.must(b.store.PutItem(b.ctx, theJob, pipeline.BodyKey(chunk0.ID, 1, 8), []byte("no body")))
		same(b, "it is done", keysOf(b, r), []pipeline.ReplyKey{"key-s1c1", "key-s1c2", "key-s2c1", "key-s2c2", "key-of-a-zombie"})
	})
	in(t, "a chunk whose text has gone asks nothing, and hides no other's", func(b *bench) {
		_, r, _ := b.stages(b.stored)
		b.rung(0, two)
		b.job(pipeline.JobPaused, func(j *pipeline.Job) { j.Fingerprint = "definition/gone" })
		same(b, "its definition has gone", keysOf(b, r), nil)
	})
}
