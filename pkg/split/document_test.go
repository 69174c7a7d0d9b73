package split

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestI09AReaderThatGaveUpAfterItsTimeUsesAnAttempt(t *testing.T) {
	b := newBench(t, sample(t))
	b.cfg.Ingest = func(context.Context, string, []byte) (pipeline.Document, error) {
		return pipeline.Document{}, fmt.Errorf("contract.pdf: reading it took longer than 90s: %w", pipeline.ErrTimedOut)
	}
	b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Overran, pipeline.TimedOut)
}

func TestAReaderThatIsInterruptedIsNoFaultOfTheDocument(t *testing.T) {
	b := newBench(t, sample(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	b.cfg.Ingest = func(ctx context.Context, _ string, _ []byte) (pipeline.Document, error) {
		cancel(pipeline.ErrDraining)
		return pipeline.Document{}, fmt.Errorf("read the PDF: %w", context.Cause(ctx))
	}
	b.mustEnd(New(b.cfg).Handle(ctx, b.claim()), pipeline.Deferral, pipeline.Shutdown)
}

func TestTheMapBackAndItsNotesAreStoredBesideTheText(t *testing.T) {
	b := newBench(t, sample(t))
	origin := pipeline.Origin{Version: pipeline.OriginVersion, Format: "pdf", Unit: "page", Notes: []string{"NOT READ: page 3"}}
	origin.Add("", 1, len(sample(t)))
	b.cfg.Ingest = func(_ context.Context, _ string, source []byte) (pipeline.Document, error) {
		return pipeline.Document{Text: string(source), Origin: origin}, nil
	}
	b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
	manifest, err := pipeline.ReadManifest(t.Context(), b.store, jobID)
	b.must(err)
	if len(manifest.Notes) != 1 || manifest.Notes[0] != origin.Notes[0] {
		t.Errorf("got notes %q, want %q", manifest.Notes, origin.Notes)
	}
	job, err := b.store.Job(t.Context(), jobID)
	b.must(err)
	body, err := b.store.Blob(t.Context(), pipeline.OriginKey(job.Source))
	b.must(err)
	if got, err := pipeline.Decode[pipeline.Origin](body, "origin"); err != nil || got.Where(10) != "page 1" {
		t.Errorf("got %+v (%v), want the map", got, err)
	}
}

func TestTheManifestSaysWhatWasNotRead(t *testing.T) {
	b := newBench(t, sample(t))
	unread := pipeline.Unread{What: "page 3", Pages: []int{3}, Why: "scanned"}
	b.cfg.Ingest = func(_ context.Context, _ string, source []byte) (pipeline.Document, error) {
		return pipeline.Document{Text: string(source), Origin: pipeline.Origin{Unread: []pipeline.Unread{unread}}}, nil
	}
	b.mustEnd(New(b.cfg).Handle(t.Context(), b.claim()), pipeline.Succeeded, "")
	manifest, err := pipeline.ReadManifest(t.Context(), b.store, jobID)
	b.must(err)
	if got := pipeline.NotRead(manifest.Unread); got != "page 3 was not read" {
		t.Errorf("got %q, want page 3", got)
	}
}

func TestALineThatIsNotUTF8IsNeverTakenForAnotherText(t *testing.T) {
	list := pipelinetest.NewDefinition(1, 1, func(d *pipeline.Definition) { d.Chunking.Lines = true })
	b := newBench(t, "a\ncaf\xE9\n", func(j *pipeline.Job) { j.Fingerprint = list.Key() })
	b.must(b.store.PutBlob(t.Context(), list.Key(), list.Encode()))
	b.cfg.Ingest = func(context.Context, string, []byte) (pipeline.Document, error) {
		return pipeline.Document{Text: "a\ncafé\n", Origin: pipeline.Origin{Format: "text"}}, nil
	}
	ending := New(b.cfg).Handle(t.Context(), b.claim())
	b.mustEnd(ending, pipeline.Permanent, pipeline.Invalid)
	if !strings.Contains(ending.Failure.Cause, "line 2 is not UTF-8") {
		t.Errorf("got %q, want the line", ending.Failure.Cause)
	}
}
