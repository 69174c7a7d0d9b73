package finalize_test

import (
	"testing"

	"holdfast/pkg/finalize"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func scanned(m *pipeline.Manifest) {
	m.Unread = []pipeline.Unread{{What: "pages 2-4", Pages: []int{2, 3, 4}, Why: "scanned"}}
}

func TestAJobWhoseDocumentWasNotReadInFullNeverEndsCompleted(t *testing.T) {
	b := newBench(t, pipelinetest.NewDefinition(1, 1), 2, scanned)
	b.answerAll(2, nil)
	b.run()
	job, want := b.job(), "not judged in full: pages 2-4 were not read"
	if job.Status != pipeline.JobPartial || job.Reason.Cause != want {
		t.Errorf("got %s because %q, want %s because %q", job.Status, job.Reason.Cause, pipeline.JobPartial, want)
	}
}

func TestNothingIsSaidToBeAbsentFromADocumentThatWasNotReadInFull(t *testing.T) {
	d := reviewed()
	m := pipeline.Manifest{Document: "hash", Chunks: []pipeline.Chunk{{}}}
	bodies := []pipeline.StageBody{body(d, 1, 0, 0), body(d, 2, 0, 0)}
	if got := finalize.Merge(d, pipelinetest.NewJob(jobID), m, bodies).Stay; len(got) != 1 {
		t.Fatalf("got %d findings of a document that was read in full, want the absence", len(got))
	}
	scanned(&m)
	if got := finalize.Merge(d, pipelinetest.NewJob(jobID), m, bodies).Stay; len(got) != 0 {
		t.Errorf("got %+v, want none: it may stand on the pages that were not read", got)
	}
}
