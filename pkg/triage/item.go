package triage

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// itemOf is the line that a chunk is and its number, if the job's chunks are lines; "" if they are not, or it is not
// stored any more.
func (t *Triage) itemOf(ctx context.Context, job pipeline.Job, document string, c pipeline.Chunk) (item string, line int, err error) {
	text, err := t.lines(ctx, job, document)
	if err != nil {
		return "", 0, err
	}
	item, line = itemIn(text, c)
	return item, line, nil
}

// itemIn is the line of a text that a chunk is, and its number.
func itemIn(text []byte, c pipeline.Chunk) (item string, line int) {
	if text == nil || c.Start < 0 || c.Start > c.End || c.End > len(text) {
		return "", 0
	}
	return pipeline.Line(string(text[c.Start:c.End])), 1 + bytes.Count(text[:c.Start], []byte("\n"))
}

// lines is the text of a job whose chunks are its lines; nil if they are not, or it is not stored any more.
func (t *Triage) lines(ctx context.Context, job pipeline.Job, document string) ([]byte, error) {
	if t.cfg.Blobs == nil {
		return nil, nil
	}
	body, err := t.cfg.Blobs.Blob(ctx, job.Fingerprint)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	d, err := pipeline.DecodeDefinition(body)
	if err != nil || !d.Chunking.Lines {
		return nil, err
	}
	text, err := t.cfg.Blobs.Blob(ctx, pipeline.DocumentKey(document))
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the text: %w", err)
	}
	return text, nil
}

// nameItems adds to letters the items that they are about; each job is read once. One that cannot be read leaves its
// letters as they are: they are told all the same.
func (t *Triage) nameItems(ctx context.Context, letters []Letter) {
	type read struct {
		text   []byte
		chunks []pipeline.Chunk
	}
	known := map[pipeline.JobID]read{}
	for i, l := range letters {
		n := l.Task.Number()
		if l.Row == nil || l.Task.Kind() != pipeline.TaskWork || n < 0 {
			continue
		}
		r, seen := known[l.Job]
		if !seen {
			if job, err := t.cfg.Store.Job(ctx, l.Job); err == nil {
				m, _ := pipeline.ReadManifest(ctx, t.cfg.Store, l.Job)
				r.chunks = m.Chunks
				r.text, _ = t.lines(ctx, job, m.Document)
			}
			known[l.Job] = r
		}
		if n < len(r.chunks) {
			letters[i].Item, _ = itemIn(r.text, r.chunks[n])
		}
	}
}
