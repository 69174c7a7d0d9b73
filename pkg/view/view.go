// Package view reads what people and programs are shown of a job: where it stands, its result, what its report is made of.
//
// It may not change anything, nor decide how things are said: the command line and the api do.
package view

import (
	"context"
	"errors"
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

// Model is the model that the job is priced with; the zero one of a job that has none, as old ones.
func Model(ctx context.Context, s *wiring.System, job pipeline.JobID) (pipeline.ModelInfo, error) {
	body, err := s.Backend.Store.Item(ctx, job, pipeline.ModelKey)
	return ifThere[pipeline.ModelInfo](body, err, "model")
}

// Origin is the map back of the job's document; the zero one if there is none: a plain text has none.
func Origin(ctx context.Context, s *wiring.System, job pipeline.Job) (pipeline.Origin, error) {
	body, err := s.Backend.Blobs.Blob(ctx, pipeline.OriginKey(job.Source))
	return ifThere[pipeline.Origin](body, err, "map back")
}

// ifThere decodes what was read; what is not there is zero.
func ifThere[T any](body []byte, err error, what string) (T, error) {
	if err != nil {
		var none T
		if errors.Is(err, pipeline.ErrNotFound) {
			return none, nil
		}
		return none, fmt.Errorf("read the %s: %w", what, err)
	}
	return pipeline.Decode[T](body, what)
}
