package triage

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// itemOf is the line that a chunk is, if the job's chunks are lines; "" if they are not, or it is not stored any more.
func (t *Triage) itemOf(ctx context.Context, job pipeline.Job, document string, c pipeline.Chunk) (string, error) {
	if t.cfg.Blobs == nil {
		return "", nil
	}
	body, err := t.cfg.Blobs.Blob(ctx, job.Fingerprint)
	if errors.Is(err, pipeline.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the definition: %w", err)
	}
	d, err := pipeline.DecodeDefinition(body)
	if err != nil || !d.Chunking.Lines {
		return "", err
	}
	text, err := t.cfg.Blobs.Blob(ctx, pipeline.DocumentKey(document))
	if errors.Is(err, pipeline.ErrNotFound) || err == nil && (c.Start < 0 || c.Start > c.End || c.End > len(text)) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the text: %w", err)
	}
	return pipeline.Line(string(text[c.Start:c.End])), nil
}
