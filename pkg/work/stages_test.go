package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/work"
)

// asker answers by a function and remembers what was asked.
type asker struct {
	answer func(q pipeline.Question) pipeline.Answer
	asked  []string
	shown  map[string]map[string]string // the replies that a call's prompt could show
	done   int
}

func (s *asker) Ask(_ context.Context, a pipeline.Attempt, questions []pipeline.Question) []pipeline.Answer {
	var answers []pipeline.Answer
	for _, q := range questions {
		s.asked = append(s.asked, q.Call.ID)
		answer := s.answer(q)
		a.Progress()
		answers = append(answers, answer)
	}
	return answers
}

func (s *asker) Done(context.Context, pipeline.Attempt) { s.done++ }

// reviewer makes one question of each call; of gated ones none.
type reviewer struct {
	asker *asker
	gated map[string]bool
	read  func(call pipeline.Call) error
}

func (r reviewer) Questions(s pipeline.StageRequest) ([]pipeline.Question, []pipeline.Call, error) {
	var questions []pipeline.Question
	var gated []pipeline.Call
	for _, call := range s.Definition.Stages[s.Stage-1].Calls {
		if r.gated[call.ID] {
			gated = append(gated, call)
			continue
		}
		r.asker.shown[call.ID] = map[string]string{}
		for id, text := range s.Replies {
			r.asker.shown[call.ID][id] = text
		}
		questions = append(questions, pipeline.Question{Chunk: s.Chunk.Index, Call: call, Request: pipeline.Request{Prompt: call.ID}})
	}
	return questions, gated, nil
}

func (r reviewer) Read(_ pipeline.StageRequest, call pipeline.Call, _ pipeline.Reply) (*float64, []pipeline.Finding, error) {
	if r.read != nil {
		if err := r.read(call); err != nil {
			return nil, nil, err
		}
	}
	return nil, []pipeline.Finding{{ID: "f-" + call.ID, Call: call.ID, State: pipeline.Provisional}}, nil
}

func (reviewer) Check(_ pipeline.Definition, _ pipeline.Call, text string) (string, bool, error) {
	return text, false, nil
}

// stages is a bench with a definition of two stages with two calls each, one chunk, and an asker.
func (b *bench) stages(answer func(q pipeline.Question) pipeline.Answer) (*asker, reviewer, func(*host)) {
	b.Helper()
	d := pipelinetest.NewDefinition(2, 2)
	b.must(b.store.PutBlob(b.ctx, d.Key(), d.Encode()))
	b.must(b.store.PutBlob(b.ctx, pipeline.DocumentKey("hash"), []byte("The cap is ten.")))
	m := pipeline.Manifest{Document: "hash", Calls: 4, Chunks: []pipeline.Chunk{{Index: 0, Start: 0, End: 15}}}
	b.must(b.store.PutItem(b.ctx, theJob, pipeline.ManifestKey, m.Encode()))
	b.job(pipeline.JobRunning, func(j *pipeline.Job) { j.Fingerprint = d.Key() })
	asker := &asker{answer: answer, shown: map[string]map[string]string{}}
	r := reviewer{asker: asker, gated: map[string]bool{}}
	return asker, r, func(h *host) {
		h.cfg.Handlers[pipeline.TaskWork] = work.NewStages(work.StagesConfig{
			Model: "scripted@1", Asker: asker, Reviewer: r, Items: h.cfg.Store.(pipeline.Items), Replies: b.store, Feed: h.cfg.Store.(pipeline.Feed),
			Blobs: b.store, Clock: b.clock, Policy: b.policy,
		})
	}
}

// stored answers with a reply that is in the store.
func (b *bench) stored(q pipeline.Question) pipeline.Answer {
	reply := pipeline.Reply{Key: pipeline.ReplyKey("key-" + q.Call.ID), Text: fmt.Sprintf(`{"of": %q}`, q.Call.ID), Cost: 7}
	_, err := b.store.PutReply(b.ctx, reply)
	b.must(err)
	return pipeline.Answer{Reply: reply, Tries: 1}
}

func (b *bench) body(stage int) pipeline.StageBody {
	b.Helper()
	row := b.read(chunk0)
	item, err := b.store.Item(b.ctx, theJob, pipeline.BodyKey(chunk0.ID, stage, row.Body(stage)))
	b.must(err)
	body, err := pipeline.Decode[pipeline.StageBody](item, "body")
	b.must(err)
	return body
}

func two(r *pipeline.Task) { r.Stages = 2 }

func TestStages(t *testing.T) {
	in(t, "every cell is answered, findings are on the feed, the purse is closed once", func(b *bench) {
		asker, _, edit := b.stages(b.stored)
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskDone)
		for stage := 1; stage <= 2; stage++ {
			body := b.body(stage)
			if len(body.Cells) != 2 || body.Cells[0].State != pipeline.CellAnswered || body.Cells[0].Cost != 7 || len(body.Findings) != 2 {
				b.Errorf("got the body %+v, want two answered cells with findings", body)
			}
		}
		groups, err := b.store.Findings(b.ctx, theJob, 0, 0)
		b.must(err)
		if len(groups) != 2 || asker.done != 1 {
			b.Errorf("got %d groups on the feed, %d times done, want 2 and 1", len(groups), asker.done)
		}
		if shown := asker.shown["s2c1"]; shown["s1c1"] != `{"of": "s1c1"}` {
			b.Errorf("the second stage could show %v, want the first's replies", shown)
		}
	})
	in(t, "a second attempt asks only the stages that are not accepted, and sees the replies of those that are", func(b *bench) {
		failed := false
		asker, _, edit := b.stages(nil)
		asker.answer = func(q pipeline.Question) pipeline.Answer {
			if q.Call.ID == "s2c2" && !failed {
				failed = true
				return pipeline.Answer{Failure: pipeline.Fail(pipeline.Ambiguous, "no answer")}
			}
			return b.stored(q)
		}
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(2 * time.Minute)
		b.status(chunk0, pipeline.TaskDone)
		if got := strings.Join(asker.asked, " "); got != "s1c1 s1c2 s2c1 s2c2 s2c1 s2c2" {
			b.Errorf("got asked %q", got)
		}
		if shown := asker.shown["s2c2"]; shown["s1c1"] == "" || shown["s1c2"] == "" {
			b.Errorf("the second attempt could show %v, want the first stage's replies", shown)
		}
	})
	in(t, "a cell that fails for good does not fail its neighbours", func(b *bench) {
		_, _, edit := b.stages(func(q pipeline.Question) pipeline.Answer {
			if q.Call.ID == "s1c2" {
				return pipeline.Answer{Failure: pipeline.Fail(pipeline.Refused, "no"), Tries: 1}
			}
			return b.stored(q)
		})
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskDone)
		cell := b.body(1).Cells[1]
		if cell.State != pipeline.CellFailed || cell.Failure.Kind != pipeline.Refused || cell.Failure.Call != "s1c2" || cell.Failure.Stage != "stage-1" {
			b.Errorf("got the cell %+v, want failed, with kind, stage and call", cell)
		}
	})
	in(t, "cells that are still open on the last attempt fail, and later stages go on", func(b *bench) {
		asker, _, edit := b.stages(func(q pipeline.Question) pipeline.Answer {
			if q.Call.ID == "s1c1" {
				return pipeline.Answer{Failure: pipeline.Fail(pipeline.Ambiguous, "no answer"), Tries: 4}
			}
			return b.stored(q)
		})
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.sweeping(10 * time.Minute)
		b.status(chunk0, pipeline.TaskDone)
		if cell := b.body(1).Cells[0]; cell.State != pipeline.CellFailed || cell.Failure.Kind != pipeline.Ambiguous {
			b.Errorf("got the cell %+v, want failed", cell)
		}
		if n := strings.Count(strings.Join(asker.asked, " "), "s1c1"); n != 3 {
			b.Errorf("asked %d times, want in 3 attempts", n)
		}
	})
	in(t, "everybody's failure makes a deferral, even on the last attempt and beside a failure of its own", func(b *bench) {
		_, _, edit := b.stages(func(q pipeline.Question) pipeline.Answer {
			if q.Call.ID == "s1c1" {
				return pipeline.Answer{Failure: pipeline.Fail(pipeline.Throttled, "slow"), Defers: true, Wait: 10 * time.Minute}
			}
			return pipeline.Answer{Failure: pipeline.Fail(pipeline.Ambiguous, "no answer")}
		})
		b.rung(0, two, func(r *pipeline.Task) { r.Attempts = 2 })
		began := b.clock.Now()
		b.start("worker", nil, edit)
		b.pass(time.Second)
		row := b.status(chunk0, pipeline.TaskPending)
		if row.Attempts != 2 || row.Deferrals != 1 || row.Accepted != 0 {
			b.Errorf("got %d attempts, %d deferrals, stage %d, want 2, 1, 0", row.Attempts, row.Deferrals, row.Accepted)
		}
		b.near("ready after", row.ReadyAt.Sub(began), 10*time.Minute)
	})
	in(t, "a stop wins over both", func(b *bench) {
		_, _, edit := b.stages(func(q pipeline.Question) pipeline.Answer {
			if q.Call.ID == "s1c1" {
				return pipeline.Answer{Stop: pipeline.ErrPaused}
			}
			return pipeline.Answer{Failure: pipeline.Fail(pipeline.Ambiguous, "no answer")}
		})
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskParked)
	})
	in(t, "the cost ceiling cancels the task with that reason", func(b *bench) {
		_, _, edit := b.stages(func(pipeline.Question) pipeline.Answer { return pipeline.Answer{Stop: pipeline.ErrCeiling} })
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		if row := b.status(chunk0, pipeline.TaskCancelled); !strings.Contains(row.Reason.Cause, "ceiling") {
			b.Errorf("got %s, want the ceiling", row.Reason)
		}
	})
	in(t, "a gated call is a cell of its own state and is not asked", func(b *bench) {
		asker, r, edit := b.stages(b.stored)
		r.gated["s2c2"] = true
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		b.status(chunk0, pipeline.TaskDone)
		if cells := b.body(2).Cells; len(cells) != 2 || cells[0].Call != "s2c2" || cells[0].State != pipeline.CellGated {
			b.Errorf("got the cells %+v, want s2c2 gated", cells)
		}
		if strings.Contains(strings.Join(asker.asked, " "), "s2c2") {
			b.Error("a gated call was asked")
		}
	})
	in(t, "an answer that cannot be read is malformed, never nothing found", func(b *bench) {
		_, r, _ := b.stages(b.stored)
		r.read = func(call pipeline.Call) error {
			if call.ID == "s1c1" {
				return errors.New("no findings in it")
			}
			return nil
		}
		b.rung(0, two)
		b.start("worker", nil, func(h *host) {
			h.cfg.Handlers[pipeline.TaskWork] = work.NewStages(work.StagesConfig{
				Model: "scripted@1", Asker: r.asker, Reviewer: r, Items: b.store, Replies: b.store, Feed: b.store, Blobs: b.store, Clock: b.clock, Policy: b.policy,
			})
		})
		b.pass(time.Second)
		if cell := b.body(1).Cells[0]; cell.State != pipeline.CellFailed || cell.Failure.Kind != pipeline.Malformed {
			b.Errorf("got the cell %+v, want failed as malformed", cell)
		}
	})
	in(t, "a worker with another model defers the task and asks nothing", func(b *bench) {
		asker, _, edit := b.stages(b.stored)
		b.job(pipeline.JobRunning, func(j *pipeline.Job) { j.Model = "other@2" })
		b.rung(0, two)
		b.start("worker", nil, edit)
		b.pass(time.Second)
		if row := b.status(chunk0, pipeline.TaskPending); row.Deferrals != 1 || row.Reason.Kind != pipeline.Rejected || len(asker.asked) != 0 {
			b.Errorf("got %d deferrals, %s, asked %v", row.Deferrals, row.Reason, asker.asked)
		}
	})
	in(t, "findings that could not be put on the feed come with the next attempt", func(b *bench) {
		_, _, edit := b.stages(b.stored)
		b.rung(0, two)
		b.start("worker", nil, edit, around(pipelinetest.LoseWrites(1, "PutFindings")))
		b.sweeping(2 * time.Minute)
		b.status(chunk0, pipeline.TaskDone)
		groups, err := b.store.Findings(b.ctx, theJob, 0, 0)
		b.must(err)
		if len(groups) != 2 {
			b.Errorf("got %d groups on the feed, want one of each stage", len(groups))
		}
	})
	in(t, "a body that is too large gives the task up with that reason, and asks nothing again", func(b *bench) {
		asker, _, edit := b.stages(b.stored)
		b.rung(0, two)
		b.start("worker", nil, edit, around(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "PutItem" && strings.Contains(op.On, "#stage#01") {
				return fmt.Errorf("500 KB: %w", pipeline.ErrTooLarge)
			}
			return do(ctx)
		}))
		b.sweeping(5 * time.Minute)
		if row := b.status(chunk0, pipeline.TaskAbandoned); !strings.Contains(row.Reason.Cause, "larger") {
			b.Errorf("got %s, want the size", row.Reason)
		}
		if len(asker.asked) != 2 {
			b.Errorf("asked %v, want each once", asker.asked)
		}
	})
}

// itemStore is pipeline.Items, embedded by another name than that of its method.
type itemStore = pipeline.Items

// forgetfulItems cannot read what one key names.
type forgetfulItems struct {
	itemStore
	key string
	err error
}

func (f forgetfulItems) Item(ctx context.Context, job pipeline.JobID, key string) ([]byte, error) {
	if key == f.key {
		return nil, f.err
	}
	return f.itemStore.Item(ctx, job, key)
}

// forgetfulBlobs is the same of blobs.
type forgetfulBlobs struct {
	pipeline.Blobs
	key string
	err error
}

func (f forgetfulBlobs) Blob(ctx context.Context, key string) ([]byte, error) {
	if key == f.key {
		return nil, f.err
	}
	return f.Blobs.Blob(ctx, key)
}

func TestStagesGone(t *testing.T) {
	attempt := func(b *bench, key string, broken error) pipeline.Record {
		asker, r, _ := b.stages(b.stored)
		b.rung(0, two, func(r *pipeline.Task) { r.Accepted, r.Bodies = 1, []int64{3} })
		b.must(b.store.PutItem(b.ctx, theJob, pipeline.BodyKey(chunk0.ID, 1, 3), pipeline.Encode(pipeline.StageBody{Stage: 1})))
		b.start("worker", nil, func(h *host) {
			items := forgetfulItems{h.cfg.Store.(pipeline.Items), key, broken}
			h.cfg.Handlers[pipeline.TaskWork] = work.NewStages(work.StagesConfig{
				Model: "scripted@1", Asker: asker, Reviewer: r, Items: items, Replies: b.store,
				Feed: h.cfg.Store.(pipeline.Feed), Blobs: forgetfulBlobs{b.store, key, broken}, Clock: b.clock, Policy: b.policy,
			})
		})
		b.pass(time.Second)
		return b.last(chunk0)
	}
	for what, key := range map[string]string{
		"definition": pipelinetest.NewDefinition(2, 2).Key(), "document": pipeline.DocumentKey("hash"),
		"manifest": pipeline.ManifestKey, "body of an accepted stage": pipeline.BodyKey(chunk0.ID, 1, 3),
	} {
		in(t, "a "+what+" that is gone ends the task at once and is named", func(b *bench) {
			record := attempt(b, key, pipeline.ErrNotFound)
			b.status(chunk0, pipeline.TaskAbandoned)
			if record.Failure.Kind != pipeline.Invalid || !strings.Contains(record.Failure.Cause, key) {
				b.Errorf("got %v, want invalid, with the key %s", record.Failure, key)
			}
		})
		in(t, "a "+what+" that cannot be read now is a deferral", func(b *bench) {
			record := attempt(b, key, pipeline.ErrBusy)
			b.status(chunk0, pipeline.TaskPending)
			if record.Outcome != pipeline.Deferral || record.Failure.Kind != pipeline.StoreFault {
				b.Errorf("got %s with %v, want a deferral", record.Outcome, record.Failure)
			}
		})
	}
}
