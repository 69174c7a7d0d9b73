package work

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// Keys are the keys of all replies that a job may have stored, from its rows and items: what the bodies of stages name,
// whichever attempt wrote them, and what the stage after the last accepted one of each chunk asks. Which of those were
// answered only the store knows: their attempt has written no body, and a worker that died not even a journal.
func (s *Stages) Keys(ctx context.Context, job pipeline.Job, rows []pipeline.Task, items []pipeline.Item) ([]pipeline.ReplyKey, error) {
	keys := keysIn(items)
	for _, row := range rows {
		if row.ID.Kind() != pipeline.TaskWork || row.Status == pipeline.TaskDone {
			continue
		}
		asked, err := s.asks(ctx, job, row)
		if err != nil {
			return nil, fmt.Errorf("the questions of %s: %w", row.Ref, err)
		}
		keys = append(keys, asked...)
	}
	return keys, nil
}

// keysIn are the keys that bodies of stages name. A body that cannot be read names none.
func keysIn(items []pipeline.Item) (keys []pipeline.ReplyKey) {
	for _, item := range items {
		if !strings.Contains(item.Key, pipeline.BodyInfix) {
			continue
		}
		body, err := pipeline.Decode[pipeline.StageBody](item.Body, item.Key)
		if err != nil {
			continue
		}
		for _, cell := range body.Cells {
			if cell.Key != "" {
				keys = append(keys, cell.Key)
			}
		}
	}
	return keys
}

// asks are the keys of the questions of the stage that is open in a row: none where they can never be made again.
func (s *Stages) asks(ctx context.Context, job pipeline.Job, row pipeline.Task) ([]pipeline.ReplyKey, error) {
	r, err := s.load(ctx, job, row)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Stage = row.Accepted + 1; r.Stage > len(r.Definition.Stages) {
		return nil, nil
	}
	questions, _, err := s.cfg.Reviewer.Questions(r)
	if err != nil {
		return nil, nil // nor could a worker make them
	}
	requests := make([]pipeline.Request, len(questions))
	for i, q := range questions {
		requests[i] = q.Request
	}
	return pipeline.KeysOf(job.Tenant, job.Model, job.Sample, requests), nil
}
