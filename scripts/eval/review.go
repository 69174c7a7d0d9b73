package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"holdfast/pkg/finalize"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/review"
	"holdfast/pkg/split"
)

// reviewed is what a job would make of a text: the findings of each stage, and what stays of them.
type reviewed struct {
	job       pipeline.Job
	manifest  pipeline.Manifest
	bodies    []pipeline.StageBody
	confirmed []pipeline.Finding
}

// merge is what stays of the findings.
func (r reviewed) merge(d pipeline.Definition) []pipeline.Finding {
	return finalize.Merge(d, r.job, r.manifest, r.bodies).Stay
}

// reviewText does what a job does, without a store.
func reviewText(d pipeline.Definition, model *offline.Model, text string) (reviewed, error) {
	chunks, err := split.Chunks(text, d.Chunking)
	if err != nil {
		return reviewed{}, err
	}
	sum := sha256.Sum256([]byte(text))
	job := pipeline.Job{ID: "eval", Model: offline.Name, Source: hex.EncodeToString(sum[:])}
	one := reviewer{d: d, job: job, text: text, read: review.New(), model: model}
	r := reviewed{job: job, manifest: pipeline.Manifest{Chunks: chunks, Document: job.Source}}
	for _, c := range chunks {
		bodies, err := one.chunk(c)
		if err != nil {
			return reviewed{}, fmt.Errorf("chunk %d: %w", c.Index, err)
		}
		r.bodies = append(r.bodies, bodies...)
	}
	r.confirmed = r.merge(d)
	return r, nil
}

type reviewer struct {
	d     pipeline.Definition
	job   pipeline.Job
	text  string
	read  *review.Reviewer
	model *offline.Model
}

// chunk asks every call of every stage about one chunk.
func (r reviewer) chunk(c pipeline.Chunk) ([]pipeline.StageBody, error) {
	var bodies []pipeline.StageBody
	replies := map[string]string{}
	for i, stage := range r.d.Stages {
		s := pipeline.StageRequest{Definition: r.d, Job: r.job, Text: r.text, Chunk: c, Stage: i + 1, Bodies: bodies, Replies: replies}
		questions, gated, err := r.read.Questions(s)
		if err != nil {
			return nil, err
		}
		body := pipeline.StageBody{Stage: i + 1, Name: stage.Name, Chunk: c.Index}
		for _, call := range gated {
			body.Cells = append(body.Cells, pipeline.Cell{Chunk: c.Index, Call: call.ID, State: pipeline.CellGated})
		}
		answers := map[string]string{}
		for _, q := range questions {
			text, err := r.ask(s, q, &body)
			if err != nil {
				return nil, fmt.Errorf("call %s: %w", q.Call.ID, err)
			}
			answers[q.Call.ID] = text
		}
		for id, text := range answers {
			replies[id] = text
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

func (r reviewer) ask(s pipeline.StageRequest, q pipeline.Question, body *pipeline.StageBody) (string, error) {
	request := q.Request
	request.Key = pipeline.KeyOf("eval", r.model.Info().ID(), 0, request)
	response, err := r.model.Complete(context.Background(), request)
	if err != nil {
		return "", err
	}
	clean, _, err := r.read.Check(s.Definition, q.Call, response.Text)
	if err != nil {
		return "", err
	}
	value, findings, err := r.read.Read(s, q.Call, pipeline.Reply{Text: clean, Model: offline.Name})
	if err != nil {
		return "", err
	}
	body.Cells = append(body.Cells, pipeline.Cell{Chunk: s.Chunk.Index, Call: q.Call.ID, State: pipeline.CellAnswered, Value: value})
	body.Findings = append(body.Findings, findings...)
	return clean, nil
}
