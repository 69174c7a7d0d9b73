// Package view reads what people and programs are shown of a job: where it stands, its result, what its report is made of.
//
// It may not change anything, nor decide how things are said: the command line and the api do.
package view

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// Definition is what the job follows.
func Definition(ctx context.Context, s *wiring.System, job pipeline.Job) (pipeline.Definition, error) {
	body, err := s.Backend.Blobs.Blob(ctx, job.Fingerprint)
	if err != nil {
		return pipeline.Definition{}, fmt.Errorf("read the definition of job %s: %w", job.ID, err)
	}
	return pipeline.DecodeDefinition(body)
}

// Result is the result of a job that has one.
func Result(ctx context.Context, s *wiring.System, job pipeline.Job) (pipeline.Result, error) {
	body, err := s.Backend.Blobs.Blob(ctx, job.Result)
	if err != nil {
		return pipeline.Result{}, fmt.Errorf("read the result of job %s: %w", job.ID, err)
	}
	return pipeline.Decode[pipeline.Result](body, "result")
}

// Model is the model that the job is priced with.
func Model(ctx context.Context, s *wiring.System, job pipeline.JobID) (pipeline.ModelInfo, error) {
	body, err := s.Backend.Store.Item(ctx, job, pipeline.ModelKey)
	if err != nil {
		return pipeline.ModelInfo{}, err
	}
	return pipeline.Decode[pipeline.ModelInfo](body, "model")
}

// Origin is the map back of the job's document; the zero one if there is none.
func Origin(ctx context.Context, s *wiring.System, job pipeline.Job) pipeline.Origin {
	body, err := s.Backend.Blobs.Blob(ctx, pipeline.OriginKey(job.Source))
	if err != nil {
		return pipeline.Origin{} // a plain text has none, and a report does not fail for want of one
	}
	origin, err := pipeline.Decode[pipeline.Origin](body, "map back")
	if err != nil {
		return pipeline.Origin{}
	}
	return origin
}
