package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// definition is the job's pipeline: as many calls as the shape has, in the stages of the contract review, with prompts
// that say which call it is and no more.
func (s shape) definition() pipeline.Definition {
	d := pipeline.Definition{
		Name: "incident", Version: "1", Title: "The incident's job", System: "You review text.", Shared: "{{.Text}}",
		Prompts:  map[string]string{"ask": "Call {{.Vars.n}}"},
		Schemas:  map[string]json.RawMessage{"answer": json.RawMessage(`{"type":"object"}`)},
		Chunking: pipeline.Chunking{Target: 200, Max: 300, MaxChunks: 1000},
	}
	made := 0
	for i, calls := range []int{1, 12, 88, 11, s.Calls} { // the last stage has what is left
		stage := pipeline.Stage{Name: fmt.Sprintf("stage-%d", i+1)}
		for range min(calls, s.Calls-made) {
			stage.Calls = append(stage.Calls, pipeline.Call{
				ID: fmt.Sprintf("call-%d", made), Title: fmt.Sprintf("Call %d", made), Prompt: "ask", Schema: "answer", MaxTokens: 300,
				Vars: map[string]string{"n": fmt.Sprint(made)},
			})
			made++
		}
		if len(stage.Calls) > 0 {
			d.Stages = append(d.Stages, stage)
		}
	}
	return d
}

// document is a text of so many chunks, each of which says its number and its job's.
func (s shape) document(job int) string {
	var b strings.Builder
	for chunk := range s.Chunks {
		fmt.Fprintf(&b, "%d. Chunk %d of job %d.\n\n", chunk+1, chunk, job)
		for line := range 11 {
			fmt.Fprintf(&b, "In clause %d.%d the supplier shall keep the customer free of all claims of others that come from the goods.\n", chunk+1, line+1)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cellOf is what a request asks about.
func cellOf(r pipeline.Request) (c cell, err error) {
	_, text, _ := strings.Cut(r.Shared, "Chunk ")
	if _, err := fmt.Sscanf(text, "%d of job %d.", &c.chunk, &c.job); err != nil {
		return c, fmt.Errorf("no chunk of ours: %w", err)
	}
	if _, err := fmt.Sscanf(r.Prompt, "Call %d", &c.call); err != nil {
		return c, fmt.Errorf("no call of ours: %w", err)
	}
	return c, nil
}

// asModel is the provider as one process reaches it.
type asModel struct{ provider *provider }

var _ pipeline.Model = asModel{}

// Info prices the calls as the named model's list does.
func (m asModel) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{Name: "incident", Version: "1", Price: listPrice(), PricedAs: pricedAs, ContextTokens: 100_000, MaxOutput: 4000}
}

// Complete asks the provider once.
func (m asModel) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	c, err := cellOf(r)
	if err != nil {
		return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Invalid, "%v", err), Err: err}
	}
	err = m.provider.ask(ctx, c)
	if errors.Is(err, errUnavailable) {
		return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Unavailable, "%v", err), Err: err}
	}
	if err != nil {
		return pipeline.Response{}, err
	}
	return pipeline.Response{Text: `{}`, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: r.InputTokens(), Output: 1}}, nil
}

// oursJob is one job of ours in the same weather: as many places, as many calls at once in each.
func oursJob(t *testing.T, s shape, p *provider, number, places int) outcome {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e := newEngine(t, ctx, pipeline.DefaultPolicy(), asModel{p})
	began := time.Now()
	job, _, err := e.desk.Submitter.Submit(ctx, submit.Submission{
		Name: "contract.txt", Source: []byte(s.document(number)), Definition: s.definition(), Model: asModel{}.Info(), Hold: true,
	})
	e.must(err)
	over, end := context.WithCancel(ctx)
	var group pipeline.Group
	died := make([]int, places)
	for place := range places {
		group.Go(func() { died[place] = e.place(over, p, number, place) })
	}
	e.begins(job.ID)
	job = e.ends(job.ID)
	took := time.Since(began)
	if !e.quiet(20 * time.Minute) {
		t.Errorf("job %d: %d messages are left in the queues", number, e.depth())
	}
	end()
	group.Wait()
	o := outcome{deaths: sum(died), took: took, bill: p.bill()}
	o.read(t, s, e.result(job))
	return o
}

// read takes from the job's result what is missing and which reasons were kept, and holds them to the promises.
func (o *outcome) read(t *testing.T, s shape, r pipeline.Result) {
	chunks := map[int]bool{}
	for _, cell := range r.Missing {
		chunks[cell.Chunk] = true
	}
	o.missing = len(chunks)
	if r.Status != pipeline.JobCompleted || r.Counts.Cells != s.cells() || r.Counts.Answered != s.cells() {
		t.Errorf("the job is %s with %d of %d cells answered, want completed with %d", r.Status, r.Counts.Answered, r.Counts.Cells, s.cells())
	}
	for _, a := range r.Attempts {
		switch {
		case a.Outcome == pipeline.Succeeded:
		case a.Failure.None() || a.Failure.Cause == "":
			t.Errorf("attempt %d of %s ended %s without a reason", a.Generation, a.Task, a.Outcome)
		default:
			o.reasons++
		}
	}
}

// place keeps one worker process alive.
func (e *engine) place(over context.Context, p *provider, job, place int) (deaths int) {
	for n := 0; ; n++ {
		w := e.start(fmt.Sprintf("worker-%d-%d", place, n), wiring.Config{Model: asModel{p}, InFlight: atOnce, Claims: 1})
		life := time.NewTimer(p.weather.life(job, place, n))
		select {
		case <-over.Done():
			life.Stop()
			w.kill()
			return deaths
		case <-life.C:
			w.kill()
			deaths++
		}
		time.Sleep(restart)
	}
}
