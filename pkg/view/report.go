package view

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
	"holdfast/pkg/wiring"
)

// Report reads what a report shows beside the result.
func Report(ctx context.Context, s *wiring.System, r pipeline.Result) (report.Data, error) {
	data := report.Data{Result: r, Generated: r.At}
	if data.Generated == 0 {
		data.Generated = r.Job.EndedAt
	}
	var err error
	if data.Definition, err = Definition(ctx, s, r.Job); err != nil {
		return data, err
	}
	if data.Model, err = Model(ctx, s, r.Job.ID); err != nil {
		return data, err
	}
	if r.Manifest.Document != "" {
		text, err := s.Backend.Blobs.Blob(ctx, pipeline.DocumentKey(r.Manifest.Document))
		if err != nil {
			return data, fmt.Errorf("read the text of job %s: %w", r.Job.ID, err)
		}
		data.Text = string(text)
		if data.Origin, err = Origin(ctx, s, r.Job); err != nil {
			return data, err
		}
	}
	rows, err := pipeline.AllTasks(ctx, s.Backend.Store, r.Job.ID)
	if err != nil {
		return data, err
	}
	byID := map[pipeline.TaskID]pipeline.Task{}
	for _, row := range rows {
		byID[row.ID] = row
		history, err := pipeline.ReadHistory(ctx, s.Backend.Store, row.Ref)
		if err != nil {
			return data, err
		}
		data.Journals = append(data.Journals, history.Journals...)
	}
	data.Answers = answers{s: s, result: r, definition: data.Definition, text: data.Text, rows: byID}.all(ctx)
	data.Before, err = before(ctx, s, r, byID)
	return data, err
}
