package split

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

const jobID = pipeline.JobID("j-1")

// bench is a job whose split is claimed.
type bench struct {
	*testing.T
	store *memory.Store
	clock *pipelinetest.Clock
	d     pipeline.Definition
	job   pipeline.Job
	cfg   Config
	rung  []pipeline.Task
	reads int // of documents
}

func newBench(t *testing.T, text string, edits ...func(*pipeline.Job)) *bench {
	b := &bench{T: t, store: memory.New(), clock: pipelinetest.NewClock(), d: pipelinetest.NewDefinition(2, 3)}
	source := hash(text)
	b.job = pipelinetest.NewJob(jobID, append([]func(*pipeline.Job){func(j *pipeline.Job) {
		j.Source, j.Fingerprint = source, b.d.Key()
	}}, edits...)...)
	ctx := t.Context()
	b.must(b.store.PutBlob(ctx, pipeline.SourceKey(source), []byte(text)))
	b.must(b.store.PutBlob(ctx, b.d.Key(), b.d.Encode()))
	_, _, err := b.store.Submit(ctx, b.job, pipelinetest.NewRow(jobID, pipeline.SplitTask, func(r *pipeline.Task) { r.Stages, r.MaxTries = 1, 0 }))
	b.must(err)
	b.cfg = Config{
		Items: b.store, Tasks: b.store, Blobs: b.store, Clock: b.clock, Policy: pipeline.DefaultPolicy(),
		Ingest: func(_ context.Context, _ string, source []byte) (pipeline.Document, error) {
			b.reads++
			return pipeline.Document{Text: string(source)}, nil
		},
		Ring: func(_ context.Context, rows ...pipeline.Task) error { b.rung = append(b.rung, rows...); return nil },
	}
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) claim() *attempt {
	b.Helper()
	row, err := b.store.Task(b.Context(), pipeline.Ref{Job: jobID, ID: pipeline.SplitTask})
	b.must(err)
	row, err = b.store.Claim(b.Context(), pipelinetest.ClaimOf(row, "w1", b.clock.Now()))
	b.must(err)
	return &attempt{b: b, claim: pipeline.Claim{Task: row}}
}

func (b *bench) rows() []pipeline.Task {
	b.Helper()
	rows, err := pipeline.AllTasks(b.Context(), b.store, jobID)
	b.must(err)
	return slices.DeleteFunc(rows, func(r pipeline.Task) bool { return r.ID.Kind() != pipeline.TaskWork })
}

func (b *bench) manifest() pipeline.Manifest {
	b.Helper()
	m, err := pipeline.ReadManifest(b.Context(), b.store, jobID)
	b.must(err)
	return m
}

func (b *bench) mustEnd(e pipeline.Ending, outcome pipeline.Outcome, kind pipeline.Kind) {
	b.Helper()
	if e.Outcome != outcome || e.Failure.Kind != kind {
		b.Fatalf("got %s (%s), want %s of kind %q", e.Outcome, e.Failure, outcome, kind)
	}
}

// attempt is a claim as the engine shows it to a splitter.
type attempt struct {
	pipeline.Attempt
	b      *bench
	claim  pipeline.Claim
	fences int
	fence  error
	from   int // the first fence that fails, from 0
}

func (a *attempt) Claim() pipeline.Claim { return a.claim }
func (a *attempt) Job() pipeline.Job     { return a.b.job }
func (a *attempt) Worker() string        { return "w1" }
func (a *attempt) Progress()             {}

func (a *attempt) Fence(context.Context) error {
	if a.fences++; a.fences <= a.from {
		return nil
	}
	return a.fence
}

func (a *attempt) Checkpoint(ctx context.Context, stage int, body []byte) error {
	if err := a.b.store.PutItem(ctx, jobID, pipeline.BodyKey(a.claim.ID, stage, a.claim.Generation), body); err != nil {
		return err
	}
	row, err := a.b.store.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: a.claim.Fence(), Stage: stage})
	if err == nil {
		a.claim.Task = row
	}
	return err
}

func TestSplit(t *testing.T) {
	text := sample(t)
	b := newBench(t, text)
	a := b.claim()
	b.mustEnd(New(b.cfg).Handle(t.Context(), a), pipeline.Succeeded, "")
	m := b.manifest()
	t.Run("the manifest lists the chunks and what they were cut from", func(t *testing.T) {
		want, err := Chunks(text, b.d.Chunking)
		if err != nil || !slices.Equal(m.Chunks, want) {
			t.Errorf("got %d chunks, want %d (%v)", len(m.Chunks), len(want), err)
		}
		if m.Document != hash(text) || m.Splitter != Version || m.Fingerprint == "" || m.Calls != 6 || m.InputTokens < 6*pipeline.EstimateTokens(text) {
			t.Errorf("got %s, %s, %s, %d calls, %d tokens", m.Document, m.Splitter, m.Fingerprint, m.Calls, m.InputTokens)
		}
		if body, err := b.store.Blob(t.Context(), pipeline.DocumentKey(m.Document)); err != nil || string(body) != text {
			t.Errorf("the text is not stored under its hash: %v", err)
		}
	})
	t.Run("there is one row for each chunk, ready, due and capped", func(t *testing.T) {
		rows := b.rows()
		if len(rows) != len(m.Chunks) || len(rows) <= pipeline.MaxWrite {
			t.Fatalf("got %d rows of %d chunks, want as many, and more than one batch", len(rows), len(m.Chunks))
		}
		for i, r := range rows {
			if r.ID != pipeline.WorkTask(i) || r.Status != pipeline.TaskPending || r.Stages != 2 || r.MaxTries != b.cfg.Policy.TryCap(6) ||
				r.Tenant != "tenant" || r.ReadyAt == 0 || r.DueAt == 0 || r.Generation != 0 {
				t.Errorf("got row %+v", r)
			}
		}
	})
	t.Run("each row is rung once", func(t *testing.T) {
		if len(b.rung) != len(m.Chunks) {
			t.Errorf("got %d bells of %d rows", len(b.rung), len(m.Chunks))
		}
	})
	t.Run("the split is accepted, under the fence", func(t *testing.T) {
		if a.claim.Accepted != 1 || a.fences < 2 {
			t.Errorf("got accepted %d after %d fences", a.claim.Accepted, a.fences)
		}
	})
	t.Run("another attempt follows the manifest and leaves the rows alone", func(t *testing.T) {
		claimed, err := b.store.Claim(t.Context(), pipelinetest.ClaimOf(b.rows()[0], "w2", b.clock.Now()))
		b.must(err)
		late := &attempt{b: b, claim: a.claim}
		late.claim.Accepted = 0
		e := New(b.cfg).Handle(t.Context(), late)
		if b.reads != 1 || b.rows()[0].Generation != claimed.Generation || len(b.rows()) != len(m.Chunks) {
			t.Errorf("got %d readings, row %+v, %s", b.reads, b.rows()[0], e.Failure)
		}
	})
}

func TestPlannedJobHasParkedRows(t *testing.T) {
	b := newBench(t, sample(t), func(j *pipeline.Job) { j.Status = pipeline.JobPlanned })
	b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
	for _, r := range b.rows() {
		if r.Status != pipeline.TaskParked || r.DueAt == 0 {
			t.Fatalf("got row %s due at %s, want it parked and due", r.Status, r.DueAt)
		}
	}
	if len(b.rung) != 0 {
		t.Errorf("got %d bells for parked rows", len(b.rung))
	}
}

func TestManifestThatStandsIsFollowed(t *testing.T) {
	t.Run("another splitter's chunks", func(t *testing.T) {
		b := newBench(t, sample(t))
		other := pipeline.Manifest{Chunks: []pipeline.Chunk{{End: 10}, {Index: 1, Start: 10, End: 20}}, Document: "d", Splitter: "other@9"}
		_, err := b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, other.Encode())
		b.must(err)
		b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
		if len(b.rows()) != 2 || b.reads != 0 {
			t.Errorf("got %d rows and %d readings, want 2 and 0", len(b.rows()), b.reads)
		}
	})
	t.Run("one that another attempt stored first", func(t *testing.T) {
		b := newBench(t, sample(t))
		b.cfg.Ingest = func(_ context.Context, _ string, source []byte) (pipeline.Document, error) {
			_, err := b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, pipeline.Manifest{Chunks: []pipeline.Chunk{{End: 10}}}.Encode())
			return pipeline.Document{Text: string(source)}, err
		}
		b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
		if len(b.rows()) != 1 {
			t.Errorf("got %d rows, want 1", len(b.rows()))
		}
	})
	t.Run("one that closed the split adds nothing", func(t *testing.T) {
		b := newBench(t, sample(t))
		_, err := b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, pipeline.Manifest{Closed: true}.Encode())
		b.must(err)
		b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Stopped, pipeline.Cancelled)
		if len(b.rows()) != 0 || len(b.rung) != 0 {
			t.Errorf("got %d rows and %d bells, want none", len(b.rows()), len(b.rung))
		}
	})
}

func TestDocumentsThatCannotBeSplit(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*bench)
		says  string
	}{
		{"it cannot be read", func(b *bench) {
			b.cfg.Ingest = func(context.Context, string, []byte) (pipeline.Document, error) {
				return pipeline.Document{}, errors.New("contract.txt: no text: it is empty")
			}
		}, "no text"},
		{"it needs too many chunks", func(b *bench) {
			b.d = pipelinetest.NewDefinition(2, 3, func(d *pipeline.Definition) { d.Chunking.MaxChunks = 5 })
			b.job.Fingerprint = b.d.Key()
			b.must(b.store.PutBlob(b.Context(), b.d.Key(), b.d.Encode()))
		}, "max_chunks"},
		{"its source is gone", func(b *bench) { b.job.Source = "gone" }, "submit it again"},
		{"its definition is no definition", func(b *bench) {
			b.must(b.store.PutBlob(b.Context(), b.d.Key(), []byte("{")))
		}, "definition"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, sample(t))
			c.spoil(b)
			e := New(b.cfg).Handle(t.Context(), b.claim())
			b.mustEnd(e, pipeline.Permanent, pipeline.Invalid)
			if !strings.Contains(e.Failure.Cause, c.says) {
				t.Errorf("got %q, want %q in it", e.Failure.Cause, c.says)
			}
			if len(b.rows()) != 0 {
				t.Errorf("got %d rows", len(b.rows()))
			}
			if _, err := pipeline.ReadManifest(t.Context(), b.store, jobID); !errors.Is(err, pipeline.ErrNotFound) {
				t.Errorf("got manifest error %v, want none stored", err)
			}
		})
	}
}

func TestRowsThatABatchLeavesOut(t *testing.T) {
	t.Run("are put again", func(t *testing.T) {
		b := newBench(t, sample(t))
		calls := 0
		b.store.Unprocessed = func(string, int) bool { calls++; return calls%2 == 0 }
		b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
		if len(b.rows()) != len(b.manifest().Chunks) {
			t.Errorf("got %d rows of %d chunks", len(b.rows()), len(b.manifest().Chunks))
		}
	})
	t.Run("are given up after a number of rounds, as the store's fault", func(t *testing.T) {
		b := newBench(t, sample(t))
		b.store.Unprocessed = func(string, int) bool { return true }
		b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Deferral, pipeline.StoreFault)
		if len(b.rung) != 0 {
			t.Errorf("got %d bells for rows that are not there", len(b.rung))
		}
		b.store.Unprocessed = nil
	})
}

// failing is a store that fails one kind of write.
type failing struct {
	*memory.Store
	put, items error
}

func (f failing) PutTasks(ctx context.Context, rows []pipeline.Task) ([]pipeline.Task, error) {
	if f.put != nil {
		return nil, f.put
	}
	return f.Store.PutTasks(ctx, rows)
}

func (f failing) PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) ([]byte, error) {
	if f.items != nil {
		return nil, f.items
	}
	return f.Store.PutItemOnce(ctx, job, key, body)
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(*bench, *attempt)
		outcome pipeline.Outcome
		kind    pipeline.Kind
	}{
		{"a busy store defers", func(b *bench, _ *attempt) {
			b.cfg.Tasks = failing{Store: b.store, put: pipeline.ErrBusy}
		}, pipeline.Deferral, pipeline.StoreFault},
		{"a manifest larger than an item is permanent", func(b *bench, _ *attempt) {
			b.cfg.Items = failing{Store: b.store, items: pipeline.ErrTooLarge}
		}, pipeline.Permanent, pipeline.Invalid},
		{"a later claim", func(_ *bench, a *attempt) { a.fence = pipeline.ErrFenced }, pipeline.Deferral, pipeline.StoreFault},
		{"a cancelled job", func(_ *bench, a *attempt) { a.fence = pipeline.ErrCancelled }, pipeline.Stopped, pipeline.Cancelled},
		{"a shutdown", func(_ *bench, a *attempt) { a.fence = fmt.Errorf("x: %w", pipeline.ErrDraining) }, pipeline.Deferral, pipeline.Shutdown},
		{"bells that are not sent are left to the reaper", func(b *bench, _ *attempt) {
			b.cfg.Ring = func(context.Context, ...pipeline.Task) error { return errors.New("the queue is away") }
		}, pipeline.Succeeded, ""},
		{"an accepted split has nothing left to do", func(b *bench, a *attempt) {
			a.claim.Accepted = 1
			b.cfg.Ingest = nil
		}, pipeline.Succeeded, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, sample(t))
			a := b.claim()
			c.edit(b, a)
			b.mustEnd(New(b.cfg).Handle(t.Context(), a), c.outcome, c.kind)
			if a.fence != nil && len(b.rows()) != 0 {
				t.Errorf("got %d rows behind the fence", len(b.rows()))
			}
		})
	}
	t.Run("a cancelled context says why", func(t *testing.T) {
		b := newBench(t, sample(t))
		b.store.Unprocessed = func(string, int) bool { return true }
		ctx, cancel := context.WithCancelCause(t.Context())
		a := b.claim()
		b.cfg.Ingest = func(_ context.Context, _ string, source []byte) (pipeline.Document, error) {
			cancel(pipeline.ErrTimedOut)
			return pipeline.Document{Text: string(source)}, nil
		}
		b.mustEnd(New(b.cfg).Handle(ctx, a), pipeline.Overran, pipeline.TimedOut)
	})
}

func TestFences(t *testing.T) {
	t.Run("the first stands before the text and the manifest", func(t *testing.T) {
		b := newBench(t, sample(t))
		a := b.claim()
		a.fence = pipeline.ErrFenced
		b.mustEnd(New(b.cfg).Handle(t.Context(), a), pipeline.Deferral, pipeline.StoreFault)
		if _, err := b.store.Blob(t.Context(), pipeline.DocumentKey(hash(sample(t)))); !errors.Is(err, pipeline.ErrNotFound) {
			t.Errorf("got %v, want no text", err)
		}
		if _, err := pipeline.ReadManifest(t.Context(), b.store, jobID); !errors.Is(err, pipeline.ErrNotFound) {
			t.Errorf("got %v, want no manifest", err)
		}
	})
	t.Run("the second stands before the rows", func(t *testing.T) {
		b := newBench(t, sample(t))
		a := b.claim()
		a.fence, a.from = pipeline.ErrFenced, 1
		b.mustEnd(New(b.cfg).Handle(t.Context(), a), pipeline.Deferral, pipeline.StoreFault)
		if len(b.manifest().Chunks) == 0 || len(b.rows()) != 0 || len(b.rung) != 0 {
			t.Errorf("got %d rows and %d bells, want none", len(b.rows()), len(b.rung))
		}
	})
}

func TestPoison(t *testing.T) {
	t.Run("a document with the marker kills before anything is stored", func(t *testing.T) {
		b := newBench(t, "1. Term. "+PoisonMarker)
		b.cfg.Kill = func() { panic("killed") }
		func() {
			defer func() { _ = recover() }()
			New(b.cfg).Handle(t.Context(), b.claim())
			t.Error("it went on")
		}()
		if _, err := pipeline.ReadManifest(t.Context(), b.store, jobID); !errors.Is(err, pipeline.ErrNotFound) {
			t.Errorf("got %v, want no manifest", err)
		}
	})
	t.Run("without a Kill the marker is text", func(t *testing.T) {
		b := newBench(t, "1. Term. "+PoisonMarker)
		b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
	})
}
