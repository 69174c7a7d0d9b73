package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/split"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
	"holdfast/pkg/wiring/embedded"
	"holdfast/pkg/work"
)

// scripted is the bench's model as Holdfast sees it.
type scripted struct {
	load   load
	chunks map[string]int // by the shared part of a request
	tries  *tries
}

// newScripted knows the calls of a document by the names that they have for every contender.
func newScripted(l load, text string) (scripted, error) {
	m := scripted{load: l, chunks: map[string]int{}, tries: newTries()}
	chunks, err := split.Chunks(text, definition().Chunking)
	for _, c := range chunks {
		m.chunks[strings.NewReplacer("{{.Context}}", text[c.Context:c.Start], "{{.Text}}", text[c.Start:c.End]).Replace(shared)] = c.Index
	}
	return m, err
}

// name is what the call of a request is called.
func (m scripted) name(r pipeline.Request) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(r.Prompt, "Call: s"), "\n")
	s, c, _ := strings.Cut(line, ".c")
	stage, _ := strconv.Atoi(s)
	call, _ := strconv.Atoi(c)
	return key(m.chunks[r.Shared], stage-1, call)
}

func (scripted) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{Name: "scripted", Version: "1", Free: true, Price: pipeline.Price{Input: 3000, Output: 15000}, ContextTokens: 200_000, MaxOutput: 4000}
}

func (m scripted) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	text, err := m.load.ask(ctx, m.name(r), m.tries.next(r.Key))
	if errors.Is(err, errFailed) {
		return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Unavailable, "%v", err), Err: err}
	}
	if err != nil {
		return pipeline.Response{}, err
	}
	return pipeline.Response{Text: text, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: len(r.Shared) / 6, Output: 200}}, nil
}

// counter counts the bytes of the log.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// runHoldfast submits the document and works on it, from the submission to the end of the job.
func runHoldfast(ctx context.Context, c child) (report, error) {
	back, err := embedded.Open(ctx, embedded.Config{Dir: c.Dir, Owner: "worker", FullSync: c.FullSync}, pipeline.DefaultPolicy())
	if err != nil {
		return report{}, err
	}
	defer back.Close()
	return c.over(ctx, back)
}

// over is the work of one document over a backend.
func (c child) over(ctx context.Context, back *wiring.Backend) (report, error) {
	policy := pipeline.DefaultPolicy()
	model, err := newScripted(c.Load, c.Document)
	if err != nil {
		return report{}, err
	}
	began := time.Now()
	var logged counter
	ended := make(chan pipeline.JobID, 1)
	system := wiring.New(back, wiring.Config{
		Tenant: "bench", Worker: "worker", Policy: policy, Model: model, InFlight: c.Load.AtOnce,
		Poll: time.Second, Jitter: func() float64 { return 0.5 },
		Read: ingest.New(ingest.Config{Clock: pipeline.NewRealClock()}).Read,
		Log:  slog.New(slog.NewTextHandler(io.Writer(&logged), &slog.HandlerOptions{Level: slog.LevelInfo})),
		Observe: func(e work.Event) {
			if e.What == "end" && e.Task.Kind() == pipeline.TaskFinalize {
				ended <- e.Job
			}
		},
	})
	drain, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	group.Go(func() { system.Reaper.Run(drain, time.Second) })
	group.Go(func() { system.Worker().Run(ctx, drain) })
	job, _, err := system.Submitter.Submit(ctx, submit.Submission{Name: "bench.txt", Source: []byte(c.Document), Definition: definition(), Model: model.Info()})
	if err != nil {
		return report{}, err
	}
	lag := newLag(back, job.ID)
	if c.Feed {
		group.Go(func() { lag.follow(drain) })
	}
	<-ended
	r := report{Makespan: time.Since(began), Calls: c.Load.calls()}
	stop()
	group.Wait()
	r.LogBytes = logged.n.Load()
	if c.Feed {
		if r.FeedLag, err = lag.figures(ctx); err != nil {
			return r, err
		}
	}
	return r, c.whole(ctx, system, job.ID)
}

// whole checks that the job ended with every cell answered.
func (c child) whole(ctx context.Context, s *wiring.System, id pipeline.JobID) error {
	job, err := s.Backend.Store.Job(ctx, id)
	if err != nil {
		return err
	}
	body, err := s.Backend.Blobs.Blob(ctx, job.Result)
	if err != nil {
		return fmt.Errorf("read the result of the job, which is %s: %w", job.Status, err)
	}
	result, err := pipeline.Decode[pipeline.Result](body, "result")
	if err != nil {
		return err
	}
	if result.Counts.Answered != c.Load.calls() {
		return fmt.Errorf("%d of %d calls were answered, the job is %s", result.Counts.Answered, c.Load.calls(), job.Status)
	}
	return nil
}
