package finalize_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/pkg/finalize"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

const jobID pipeline.JobID = "job-1"

// bench is one job of a definition on a memory store.
type bench struct {
	*testing.T
	store   *memory.Store
	control *memory.Queue
	clock   *pipelinetest.Clock
	d       pipeline.Definition
	policy  pipeline.Policy
}

// newBench has a running job whose split is done: so many chunks, whose rows have not ended.
func newBench(t *testing.T, d pipeline.Definition, chunks int, edits ...func(*pipeline.Manifest)) *bench {
	b := &bench{T: t, store: memory.New(), clock: pipelinetest.NewClock(), d: d, policy: pipeline.DefaultPolicy()}
	b.control = memory.NewQueue(memory.QueueConfig{Visibility: time.Minute, MaxReceives: 5, Now: b.clock.Now})
	job := pipelinetest.NewJob(jobID, func(j *pipeline.Job) { j.Fingerprint = d.Key() })
	split := pipelinetest.NewRow(jobID, pipeline.SplitTask, func(r *pipeline.Task) { r.Stages = 1 })
	_, _, err := b.store.Submit(t.Context(), job, split)
	b.must(err)
	b.must(b.store.PutBlob(t.Context(), d.Key(), d.Encode()))
	if chunks == 0 {
		return b
	}
	m := pipeline.Manifest{Document: "hash", Calls: d.Calls()}
	var rows []pipeline.Task
	for n := range chunks {
		m.Chunks = append(m.Chunks, pipeline.Chunk{Index: n, Start: 100 * n, End: 100 * (n + 1)})
		rows = append(rows, pipelinetest.NewRow(jobID, pipeline.WorkTask(n), func(r *pipeline.Task) { r.Stages = len(d.Stages) }))
	}
	for _, edit := range edits {
		edit(&m)
	}
	_, err = b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, m.Encode())
	b.must(err)
	_, err = b.store.PutTasks(t.Context(), rows)
	b.must(err)
	b.close(pipeline.SplitTask, pipeline.TaskDone, pipeline.Failure{})
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) row(id pipeline.TaskID) pipeline.Task {
	b.Helper()
	row, err := b.store.Task(b.Context(), pipeline.Ref{Job: jobID, ID: id})
	b.must(err)
	return row
}

func (b *bench) job() pipeline.Job {
	b.Helper()
	job, err := b.store.Job(b.Context(), jobID)
	b.must(err)
	return job
}

func (b *bench) setJob(edit func(*pipeline.Job)) {
	b.Helper()
	seen := b.job()
	next := seen
	edit(&next)
	_, err := b.store.SetJob(b.Context(), seen, next)
	b.must(err)
}

func (b *bench) close(id pipeline.TaskID, status pipeline.TaskStatus, reason pipeline.Failure) {
	b.Helper()
	_, err := b.store.Close(b.Context(), pipeline.CloseWrite{Seen: b.row(id), Status: status, Reason: reason})
	b.must(err)
}

// answer claims a chunk, accepts a body for each stage so many stages long, and ends it.
func (b *bench) answer(chunk, stages int, status pipeline.TaskStatus, reason pipeline.Failure, edit func(*pipeline.StageBody)) {
	b.Helper()
	ctx := b.Context()
	row, err := b.store.Claim(ctx, pipelinetest.ClaimOf(b.row(pipeline.WorkTask(chunk)), "w1", b.clock.Now()))
	b.must(err)
	for stage := 1; stage <= stages; stage++ {
		body := pipeline.StageBody{Stage: stage, Name: b.d.Stages[stage-1].Name, Chunk: chunk, Generation: row.Generation, Worker: "w1"}
		for _, call := range b.d.Stages[stage-1].Calls {
			value := 0.0
			body.Cells = append(body.Cells, pipeline.Cell{Chunk: chunk, Call: call.ID, State: pipeline.CellAnswered, Value: &value})
		}
		if edit != nil {
			edit(&body)
		}
		b.must(b.store.PutItem(ctx, jobID, pipeline.BodyKey(row.ID, stage, row.Generation), pipeline.Encode(body)))
		row, err = b.store.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: stage})
		b.must(err)
	}
	record := pipeline.Record{
		Task: row.ID, Generation: row.Generation, Attempt: row.Attempts, Ender: row.ClaimID, Worker: "w1", Tries: 5, Unnamed: 1,
		Cost: 100, Usage: pipeline.Usage{Input: 10, Output: 2}, Failures: map[pipeline.Kind]int{pipeline.Ambiguous: 1}, Status: status, Failure: reason,
	}
	b.must(b.store.PutItem(ctx, jobID, pipeline.RecordKey(row.ID, row.Generation, row.ClaimID), pipeline.Encode(record)))
	_, err = b.store.End(ctx, pipelinetest.EndOf(row, pipeline.Verdict{Status: status}, reason, b.clock.Now()))
	b.must(err)
}

// answerAll is every chunk answered in full.
func (b *bench) answerAll(chunks int, edit func(*pipeline.StageBody)) {
	b.Helper()
	for n := range chunks {
		b.answer(n, len(b.d.Stages), pipeline.TaskDone, pipeline.Failure{}, edit)
	}
}

func (b *bench) opener() finalize.Opener {
	return finalize.Opener{Store: b.store, Queues: pipeline.Queues{Control: b.control, Work: b.control}, Clock: b.clock, Policy: b.policy}
}

func (b *bench) finalizer(edits ...func(*finalize.Config)) *finalize.Finalizer {
	cfg := finalize.Config{Store: b.store, Blobs: b.store, Clock: b.clock, Policy: b.policy}
	for _, edit := range edits {
		edit(&cfg)
	}
	return finalize.New(cfg)
}

// claim puts the finalize of the job's epoch, if it is not there, and claims it.
func (b *bench) claim() *attempt {
	b.Helper()
	id := pipeline.FinalizeTask(b.job().Epoch)
	now := b.clock.Now()
	_, err := b.store.PutTasks(b.Context(), []pipeline.Task{pipelinetest.NewRow(jobID, id, func(r *pipeline.Task) { r.Stages, r.MaxTries = 1, 0 })})
	b.must(err)
	row, err := b.store.Claim(b.Context(), pipelinetest.ClaimOf(b.row(id), fmt.Sprintf("f%d", b.row(id).Generation), now))
	b.must(err)
	return &attempt{b: b, claim: pipeline.Claim{Task: row}}
}

// run claims the finalize and handles it.
func (b *bench) run(edits ...func(*finalize.Config)) pipeline.Ending {
	b.Helper()
	return b.finalizer(edits...).Handle(b.Context(), b.claim())
}

func (b *bench) result() pipeline.Result {
	b.Helper()
	job := b.job()
	body, err := b.store.Blob(b.Context(), job.Result)
	b.must(err)
	r, err := pipeline.Decode[pipeline.Result](body, "result")
	b.must(err)
	return r
}

// feed is the last that the feed says of each finding.
func (b *bench) feed() map[string]pipeline.Finding {
	b.Helper()
	groups, err := b.store.Findings(b.Context(), jobID, 0, 1000)
	b.must(err)
	last := map[string]pipeline.Finding{}
	for _, g := range groups {
		for _, f := range g.Findings {
			last[f.ID] = f
		}
	}
	return last
}

// attempt is a claim on a finalize as the engine shows it: what a finalizer may use of it, and nothing else.
type attempt struct {
	pipeline.Attempt
	b      *bench
	claim  pipeline.Claim
	before func(what string) // called before each write of the attempt's own
}

func (a *attempt) Claim() pipeline.Claim { return a.claim }
func (a *attempt) Job() pipeline.Job     { return a.b.job() }
func (a *attempt) Progress()             {}

func (a *attempt) Checkpoint(ctx context.Context, stage int, body []byte) error {
	if a.before != nil {
		a.before("checkpoint")
	}
	if err := a.b.store.PutItem(ctx, jobID, pipeline.BodyKey(a.claim.ID, stage, a.claim.Generation), body); err != nil {
		return err
	}
	row, err := a.b.store.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: a.claim.Fence(), Stage: stage})
	if err == nil {
		a.claim.Task = row
	}
	return err
}

func (a *attempt) Fence(ctx context.Context) error {
	if a.before != nil {
		a.before("fence")
	}
	row, err := a.b.store.Task(ctx, a.claim.Ref)
	if err == nil && (row.Generation != a.claim.Generation || row.ClaimID != a.claim.ClaimID || row.Status != pipeline.TaskClaimed) {
		return pipeline.ErrFenced
	}
	return err
}
