// Package split is the split task of a job: it reads what was submitted, cuts the text into chunks, and puts a work
// task for each.
//
// It may decide: where a text is cut, and that a document can never be read or cut.
// It may not: cut a job twice (the first manifest stored is followed by every later attempt), start work on a chunk, or
// end a job.
package split

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// PoisonMarker is the text that makes a splitter with a Kill call it.
const PoisonMarker = "HOLDFAST-POISON-SPLIT"

// Config is what a splitter needs.
type Config struct {
	Items interface {
		Item(ctx context.Context, job pipeline.JobID, key string) ([]byte, error)
		PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) (stands []byte, err error)
	}
	Tasks interface {
		PutTasks(ctx context.Context, rows []pipeline.Task) (unprocessed []pipeline.Task, err error)
	}
	Blobs  pipeline.Blobs
	Clock  pipeline.Clock
	Policy pipeline.Policy
	// Ingest makes text of what was submitted. Its errors are permanent, the same bytes never read better, unless ctx
	// ended or it gave up after its own time (pipeline.ErrTimedOut).
	Ingest func(ctx context.Context, name string, source []byte) (pipeline.Document, error)
	// Ring sends the bells of new rows. What it cannot send, the reaper rings.
	Ring func(ctx context.Context, rows ...pipeline.Task) error
	// Kill ends the process when a document holds PoisonMarker, so that tests can see what a document that kills its
	// parser does. nil: the marker is text like any other.
	Kill func()
}

// Splitter is the handler of split tasks.
type Splitter struct{ cfg Config }

var _ pipeline.Handler = (*Splitter)(nil)

// New is the handler of split tasks.
func New(cfg Config) *Splitter { return &Splitter{cfg: cfg} }

// Handle splits the job's document, or goes on with a split that an attempt before it began.
func (s *Splitter) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	if a.Claim().Accepted >= 1 {
		return pipeline.Ending{Outcome: pipeline.Succeeded}
	}
	if err := s.split(ctx, a); err != nil {
		return pipeline.EndingOf(failure(ctx, err, a.Job()), 0)
	}
	return pipeline.Ending{Outcome: pipeline.Succeeded}
}

func (s *Splitter) split(ctx context.Context, a pipeline.Attempt) error {
	began, job := s.cfg.Clock.Now(), a.Job()
	manifest, err := s.manifest(ctx, a, job)
	if err != nil {
		return err
	}
	if manifest.Closed {
		return &problem{pipeline.Fail(pipeline.Cancelled, "the split was closed before it was done")}
	}
	d, err := s.definition(ctx, job)
	if err != nil {
		return err
	}
	rows := s.rows(a.Job(), d, len(manifest.Chunks))
	if err := s.put(ctx, a, rows); err != nil {
		return err
	}
	s.ring(ctx, rows)
	body := pipeline.StageBody{
		Stage: 1, Name: "split", Chunk: -1, Generation: a.Claim().Generation, Worker: a.Worker(),
		StartedAt: began, EndedAt: s.cfg.Clock.Now(),
	}
	if err := a.Checkpoint(ctx, 1, pipeline.Encode(body)); err != nil {
		return fmt.Errorf("accept the split: %w", err)
	}
	return nil
}

// manifest is the one that stands: the job's, or what this attempt found if it is the first to store one.
func (s *Splitter) manifest(ctx context.Context, a pipeline.Attempt, job pipeline.Job) (pipeline.Manifest, error) {
	stands, err := pipeline.ReadManifest(ctx, s.cfg.Items, job.ID)
	if err == nil || !errors.Is(err, pipeline.ErrNotFound) {
		return stands, err
	}
	d, err := s.definition(ctx, job)
	if err != nil {
		return pipeline.Manifest{}, err
	}
	read, err := s.ingest(ctx, job, d.Chunking)
	if err != nil {
		return pipeline.Manifest{}, err
	}
	text := read.Text
	a.Progress()
	found, err := manifestOf(job, d, text)
	if err != nil {
		return pipeline.Manifest{}, invalid("cut the document", err)
	}
	found.Notes, found.Unread = read.Origin.Notes, read.Origin.Unread
	a.Progress()
	if err := a.Fence(ctx); err != nil {
		return pipeline.Manifest{}, fmt.Errorf("before the manifest: %w", err)
	}
	if err := s.cfg.Blobs.PutBlob(ctx, pipeline.DocumentKey(found.Document), []byte(text)); err != nil {
		return pipeline.Manifest{}, fmt.Errorf("store the text: %w", err)
	}
	if err := s.putOrigin(ctx, job, read.Origin); err != nil {
		return pipeline.Manifest{}, err
	}
	body, err := s.cfg.Items.PutItemOnce(ctx, job.ID, pipeline.ManifestKey, found.Encode())
	if errors.Is(err, pipeline.ErrTooLarge) {
		return pipeline.Manifest{}, invalid(fmt.Sprintf("list %d chunks", len(found.Chunks)), err)
	}
	if err != nil {
		return pipeline.Manifest{}, fmt.Errorf("store the manifest: %w", err)
	}
	return pipeline.DecodeManifest(body)
}

// putOrigin stores the map back, if there is one.
func (s *Splitter) putOrigin(ctx context.Context, job pipeline.Job, origin pipeline.Origin) error {
	if len(origin.Parts) == 0 {
		return nil
	}
	if err := s.cfg.Blobs.PutBlob(ctx, pipeline.OriginKey(job.Source), pipeline.Encode(origin)); err != nil {
		return fmt.Errorf("store the map back: %w", err)
	}
	return nil
}

// ingest is the text of what was submitted.
func (s *Splitter) ingest(ctx context.Context, job pipeline.Job, chunking pipeline.Chunking) (pipeline.Document, error) {
	source, err := s.blob(ctx, "document", pipeline.SourceKey(job.Source))
	if err != nil {
		return pipeline.Document{}, err
	}
	d, err := s.cfg.Ingest(ctx, job.Name, source)
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, pipeline.ErrTimedOut):
		return pipeline.Document{}, fmt.Errorf("read the document: %w", err)
	case err != nil:
		return pipeline.Document{}, invalid("read the document", err)
	}
	if err := chunking.CheckLines(source, d); err != nil {
		return pipeline.Document{}, invalid("take the lines of the document", err)
	}
	if s.cfg.Kill != nil && strings.Contains(d.Text, PoisonMarker) {
		s.cfg.Kill()
	}
	return d, nil
}

// definition is what the job is pinned to.
func (s *Splitter) definition(ctx context.Context, job pipeline.Job) (pipeline.Definition, error) {
	body, err := s.blob(ctx, "definition", job.Fingerprint)
	if err != nil {
		return pipeline.Definition{}, err
	}
	d, err := pipeline.DecodeDefinition(body)
	if err != nil {
		return pipeline.Definition{}, invalid("read the definition", err)
	}
	return d, nil
}

// blob reads what submit stored before it made the job: if it is gone, waiting brings nothing back.
func (s *Splitter) blob(ctx context.Context, what, key string) ([]byte, error) {
	body, err := s.cfg.Blobs.Blob(ctx, key)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil, invalid("the job's "+what+" is gone, submit it again", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", what, err)
	}
	return body, nil
}

func manifestOf(job pipeline.Job, d pipeline.Definition, text string) (pipeline.Manifest, error) {
	chunks, err := Chunks(text, d.Chunking)
	if err != nil {
		return pipeline.Manifest{}, err
	}
	document := hash(text)
	return pipeline.Manifest{
		Chunks:      chunks,
		Document:    document,
		Splitter:    Version,
		Fingerprint: hash(document + "\x00" + Version + "\x00" + job.Fingerprint),
		Calls:       d.Calls(),
		InputTokens: inputTokens(d, chunks),
	}, nil
}

// inputTokens estimates the input of one ask of every cell. Replies of earlier calls that a prompt shows are not known
// yet and not counted.
func inputTokens(d pipeline.Definition, chunks []pipeline.Chunk) int {
	shared := pipeline.EstimateTokens(d.System) + pipeline.EstimateTokens(d.Shared)
	perChunk := 0
	for _, stage := range d.Stages {
		for _, call := range stage.Calls {
			perChunk += shared + pipeline.EstimateTokens(d.Prompts[call.Prompt]) + pipeline.EstimateTokens(string(d.Schemas[call.Schema]))
			for _, value := range call.Vars {
				perChunk += pipeline.EstimateTokens(value)
			}
		}
	}
	sum := 0
	for _, c := range chunks {
		sum += perChunk + d.Calls()*(c.Tokens+pipeline.EstimateTokens(c.Heading))
	}
	return sum
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
