package triage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/triage"
)

func TestALetterOfANewerVersionHidesNoOther(t *testing.T) {
	b := newBench(t)
	bury := func(id pipeline.TaskID, format int) {
		body := pipeline.Encode(pipeline.Message{Job: jobID, Task: id, Format: format})
		b.must(b.work.Bury(t.Context(), pipeline.DeadLetter{Body: body, Native: true, SentAt: b.clock.Now()}))
	}
	bury(pipeline.WorkTask(2), 0)
	bury(pipeline.WorkTask(5), 0)
	bury(pipeline.WorkTask(6), pipeline.FormatVersion+1)
	cfg := b.cfg
	cfg.Store = pipelinetest.Wrap(b.store, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
		if op.Name == "Task" && strings.Contains(op.On, string(pipeline.WorkTask(5))) {
			return fmt.Errorf("task %s: %w", op.On, pipeline.ErrNewer)
		}
		return do(ctx)
	})
	letters, err := triage.New(cfg).DeadLetters(t.Context())
	b.must(err)
	var got []string
	for _, l := range letters {
		got = append(got, fmt.Sprintf("%s %v %s", l.Task, l.Row != nil, l.Meaning))
	}
	slices.Sort(got)
	const newer = "a newer version of Holdfast wrote it: update what reads this"
	want := []string{" false " + newer, "work#00002 true abandoned: lost in stage stage-2: worker w3 died", "work#00005 false " + newer}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
