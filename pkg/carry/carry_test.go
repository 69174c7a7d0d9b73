package carry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/carry"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// filled is a store with a job of which everything is there.
func filled(t *testing.T, edits ...func(*pipeline.Job)) (*memory.Store, pipeline.Job) {
	t.Helper()
	s := memory.New()
	job := pipelinetest.NewJob("job-1", append([]func(*pipeline.Job){func(j *pipeline.Job) {
		j.Status, j.Source, j.Fingerprint, j.Result = pipeline.JobPartial, "abc", "definition/1", "result/1"
	}}, edits...)...)
	split := pipelinetest.NewRow(job.ID, pipeline.SplitTask, func(r *pipeline.Task) { r.Status = pipeline.TaskDone })
	_, _, err := s.Submit(t.Context(), job, split)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	var rows []pipeline.Task
	for n := range 30 {
		rows = append(rows, pipelinetest.NewRow(job.ID, pipeline.WorkTask(n), func(r *pipeline.Task) { r.Status, r.Generation = pipeline.TaskAbandoned, 3 }))
	}
	for batch := range slices.Chunk(rows, pipeline.MaxWrite) {
		_, err = s.PutTasks(t.Context(), batch)
		must(err)
	}
	for _, key := range []string{pipeline.SourceKey("abc"), "definition/1", "result/1", pipeline.DocumentKey("doc"), "reply/long"} {
		must(s.PutBlob(t.Context(), key, []byte("blob "+key)))
	}
	must(s.PutItem(t.Context(), job.ID, pipeline.ManifestKey, pipeline.Manifest{Document: "doc"}.Encode()))
	body := pipeline.StageBody{Stage: 1, Cells: []pipeline.Cell{{Call: "c1", Key: "k1"}, {Call: "c2", Key: "k2"}, {Call: "c3"}}}
	must(s.PutItem(t.Context(), job.ID, pipeline.BodyKey(pipeline.WorkTask(1), 1, 2), pipeline.Encode(body)))
	for _, r := range []pipeline.Reply{{Key: "k1", Text: "{}", Cost: 3}, {Key: "k2", Blob: "reply/long"}, {Key: "k3", Text: "of a stage that is open"}, {Key: "another job's"}} {
		_, err = s.PutReply(t.Context(), r)
		must(err)
	}
	must(s.PutFindings(t.Context(), pipeline.FindingGroup{Job: job.ID, Task: pipeline.WorkTask(1), Stage: 1, Generation: 2, Findings: []pipeline.Finding{{ID: "f1"}}}))
	must(s.OpenBudget(t.Context(), job.ID, 100))
	r := pipeline.Reservation{Task: pipeline.WorkTask(1), Generation: 2, Stage: 1, Amount: 40}
	_, err = s.Reserve(t.Context(), job.ID, r)
	must(err)
	_, err = s.Settle(t.Context(), job.ID, r)
	must(err)
	return s, job
}

// keys are those of the job's replies, stored or not.
func keys(_ context.Context, job pipeline.Job, rows []pipeline.Task, items []pipeline.Item) ([]pipeline.ReplyKey, error) {
	if len(rows) != 31 || len(items) == 0 || job.ID != "job-1" {
		return nil, fmt.Errorf("got job %s with %d rows and %d items", job.ID, len(rows), len(items))
	}
	return []pipeline.ReplyKey{"k1", "k2", "k3", "k4"}, nil
}

func export(t *testing.T, s *memory.Store, id pipeline.JobID) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := carry.Export(t.Context(), s, s, pipelinetest.NewClock(), keys, id, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// sorted are the lines of a file: replies come in any order.
func sorted(file []byte) []string {
	lines := strings.Split(string(file), "\n")
	slices.Sort(lines)
	return lines
}

func TestCarry(t *testing.T) {
	t.Run("what is imported is exported as it was, however often it is imported", func(t *testing.T) {
		from, job := filled(t)
		file := export(t, from, job.ID)
		to := memory.New()
		for range 2 {
			got, err := carry.Import(t.Context(), to, to, bytes.NewReader(file))
			if err != nil || got != job {
				t.Fatalf("got job %s, error %v; want %s", got.ID, err, job.ID)
			}
		}
		if again := export(t, to, job.ID); !slices.Equal(sorted(again), sorted(file)) {
			t.Errorf("got\n%s\nwant\n%s", again, file)
		}
	})
	t.Run("all of its replies are carried, and no other job's", func(t *testing.T) {
		from, job := filled(t)
		to := memory.New()
		if _, err := carry.Import(t.Context(), to, to, bytes.NewReader(export(t, from, job.ID))); err != nil {
			t.Fatal(err)
		}
		found, _, err := to.Replies(t.Context(), []pipeline.ReplyKey{"k1", "k2", "k3", "k4", "another job's"})
		if err != nil || len(found) != 3 || found["k3"].Text != "of a stage that is open" || found["k2"].Blob != "reply/long" || found["k2"].Text != "" {
			t.Errorf("got %v, error %v; want k1, k2 and k3 as they were stored", found, err)
		}
	})
	t.Run("a file that was cut off brings no job", func(t *testing.T) {
		from, job := filled(t)
		file := export(t, from, job.ID)
		to := memory.New()
		if _, err := carry.Import(t.Context(), to, to, bytes.NewReader(file[:bytes.LastIndexByte(file[:len(file)-1], '\n')+1])); err == nil {
			t.Error("it was taken for whole")
		}
		if _, err := to.Job(t.Context(), job.ID); !errors.Is(err, pipeline.ErrNotFound) {
			t.Errorf("got error %v, want no job", err)
		}
	})
	t.Run("a job that somebody may work on is not exported", func(t *testing.T) {
		s, job := filled(t, func(j *pipeline.Job) { j.Status = pipeline.JobRunning })
		if err := carry.Export(t.Context(), s, s, pipelinetest.NewClock(), keys, job.ID, &bytes.Buffer{}); !errors.Is(err, carry.ErrBusyJob) {
			t.Errorf("running: got error %v, want ErrBusyJob", err)
		}
		s, job = filled(t, func(j *pipeline.Job) { j.Status = pipeline.JobPaused })
		claimed := pipelinetest.NewRow(job.ID, pipeline.WorkTask(99), func(r *pipeline.Task) { r.Status = pipeline.TaskClaimed })
		if _, err := s.PutTasks(t.Context(), []pipeline.Task{claimed}); err != nil {
			t.Fatal(err)
		}
		if err := carry.Export(t.Context(), s, s, pipelinetest.NewClock(), keys, job.ID, &bytes.Buffer{}); !errors.Is(err, carry.ErrBusyJob) {
			t.Errorf("claimed: got error %v, want ErrBusyJob", err)
		}
	})
	t.Run("another state of the job that is there stays", func(t *testing.T) {
		from, job := filled(t)
		to, _ := filled(t, func(j *pipeline.Job) { j.Epoch = 2 })
		if _, err := carry.Import(t.Context(), to, to, bytes.NewReader(export(t, from, job.ID))); !errors.Is(err, pipeline.ErrFenced) {
			t.Errorf("got error %v, want ErrFenced", err)
		}
		if stands, err := to.Job(t.Context(), job.ID); err != nil || stands.Epoch != 2 {
			t.Errorf("got epoch %d, error %v; want 2", stands.Epoch, err)
		}
	})
}
