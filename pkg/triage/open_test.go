package triage_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/triage"
)

func TestWhyOfAJobThatHasNotEnded(t *testing.T) {
	b := newBench(t)
	b.setJob(func(j *pipeline.Job) { j.Status, j.EndedAt = pipeline.JobRunning, 0 })
	b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(2)}, map[string]any{
		"status": "pending", "ready_at": b.clock.Now().Add(24 * time.Second), "reason": pipeline.Fail(pipeline.Broken, "exit status 1: no such host"),
		"stages": 2, "accepted": 1, "bodies": []int{4}, "generation": 4,
	}))
	s, err := triage.New(b.cfg).WhyJob(t.Context(), jobID)
	b.must(err)
	text := s.Text()
	for _, want := range []string{
		"9 of 12 cells answered", "1 failed", "2 cells open", "held back  1 task, next attempt in 24 s: broken: exit status 1: no such host", "work#00002",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "nothing is missing") {
		t.Errorf("cells are open, and it says that nothing is missing:\n%s", text)
	}
}
