package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
	"holdfast/pkg/wiring"
)

// answers reads the cells of the calls that make no findings, chunk by chunk: the stages that were accepted and the
// replies as they are stored. What the result calls missing comes with its reason.
type answers struct {
	s          *wiring.System
	result     pipeline.Result
	definition pipeline.Definition
	text       string
	rows       map[pipeline.TaskID]pipeline.Task
	lines      *lineCount // of the chunks so far
}

// lineCount counts lines from chunk to chunk: each text is read once.
type lineCount struct{ upTo, lines int }

// at is the number of the line that a chunk is, from 1; 0 where chunks are no lines.
func (n *lineCount) at(r answers, c pipeline.Chunk) int {
	if !r.definition.Chunking.Lines || c.Start < n.upTo || c.Start > len(r.text) {
		return 0
	}
	n.lines += strings.Count(r.text[n.upTo:c.Start], "\n")
	n.upTo = c.Start
	return n.lines + 1
}

// cellOf names a cell.
type cellOf struct {
	chunk int
	call  string
}

func (r answers) all(ctx context.Context) iter.Seq2[report.Answer, error] {
	return func(yield func(report.Answer, error) bool) {
		missing := map[cellOf]pipeline.Cell{}
		for _, cell := range r.result.Missing {
			missing[cellOf{cell.Chunk, cell.Call}] = cell
		}
		r.lines = &lineCount{}
		for _, chunk := range r.result.Manifest.Chunks {
			found, err := r.chunk(ctx, chunk, missing)
			if err != nil {
				yield(report.Answer{}, fmt.Errorf("read the answers about chunk %d: %w", chunk.Index, err))
				return
			}
			for _, a := range found {
				if !yield(a, nil) {
					return
				}
			}
		}
	}
}

func (r answers) chunk(ctx context.Context, chunk pipeline.Chunk, missing map[cellOf]pipeline.Cell) ([]report.Answer, error) {
	var found []report.Answer
	var keys []pipeline.ReplyKey
	line := r.lines.at(r, chunk)
	for i, stage := range r.definition.Stages {
		cells, err := r.cells(ctx, chunk, i+1)
		if err != nil {
			return nil, err
		}
		for _, call := range stage.Calls {
			if call.Findings != "" {
				continue
			}
			cell, lacks := missing[cellOf{chunk.Index, call.ID}]
			if !lacks {
				cell = cells[call.ID]
			}
			if cell.State == pipeline.CellAnswered && cell.Key != "" {
				keys = append(keys, cell.Key)
			}
			found = append(found, report.Answer{
				Chunk: chunk.Index, Start: chunk.Start, End: chunk.End, Line: line, About: report.About(r.text, chunk), Call: call.ID,
				State: cell.State, Key: cell.Key, Value: cell.Value, Cost: cell.Cost, Reused: cell.Reused, Tries: cell.Tries, Failure: cell.Failure,
			})
		}
	}
	replies, err := pipeline.ReadReplies(ctx, r.s.Backend.Store, r.s.Backend.Blobs, r.s.Clock(), keys)
	for i := range found {
		found[i].Text = replies[found[i].Key].Text
	}
	return found, err
}

// cells are those of a chunk's accepted stage, by call; none of a stage that was not accepted.
func (r answers) cells(ctx context.Context, chunk pipeline.Chunk, stage int) (map[string]pipeline.Cell, error) {
	row, known := r.rows[pipeline.WorkTask(chunk.Index)]
	if !known || stage > row.Accepted {
		return nil, nil
	}
	body, err := pipeline.ReadBody(ctx, r.s.Backend.Store, row, stage)
	if err != nil {
		return nil, err
	}
	cells := make(map[string]pipeline.Cell, len(body.Cells))
	for _, cell := range body.Cells {
		cells[cell.Call] = cell
	}
	return cells, nil
}

// before is what the job's last result said before it was redriven; nil if it never was, or if that is not known.
func before(ctx context.Context, s *wiring.System, r pipeline.Result, rows map[pipeline.TaskID]pipeline.Task) (*pipeline.Result, error) {
	for epoch := r.Epoch - 1; epoch >= 1; epoch-- {
		row, known := rows[pipeline.FinalizeTask(epoch)]
		if !known || row.Status != pipeline.TaskDone {
			continue
		}
		body, err := s.Backend.Blobs.Blob(ctx, pipeline.ResultKey(r.Job.ID, epoch, row.Generation))
		if errors.Is(err, pipeline.ErrNotFound) {
			continue // another of its claims wrote it
		}
		if err != nil {
			return nil, fmt.Errorf("read the result of epoch %d: %w", epoch, err)
		}
		old, err := pipeline.Decode[pipeline.Result](body, "result")
		return &old, err
	}
	return nil, nil
}
