package pipeline_test

import (
	"testing"

	"holdfast/pkg/pipeline"
)

func TestReasonsForPeople(t *testing.T) {
	ceiling := pipeline.Fail(pipeline.Cancelled, "the cost ceiling was reached")
	for _, c := range []struct {
		f    pipeline.Failure
		want string
	}{
		{ceiling, "the cost ceiling was reached"},
		{ceiling.At("read", "q1"), "stopped in stage read, call q1: the cost ceiling was reached"},
		{pipeline.Fail(pipeline.Broken, "exit status 7").At("work", ""), "broken in stage work: exit status 7"},
		{pipeline.Failure{}, ""},
	} {
		if got := c.f.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
