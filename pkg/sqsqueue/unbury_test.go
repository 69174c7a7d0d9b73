//go:build localstack

package sqsqueue_test

import (
	"net/http"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestUnburyRemovesTheLettersOfOneJobAndNoOther(t *testing.T) {
	const n = 12 // of each job: more than a batch
	for _, c := range []struct {
		name  string
		wrong func(p *pipelinetest.Proxy)
		want  int
	}{
		{"all go", func(*pipelinetest.Proxy) {}, n},
		{"a batch that is refused is told, and the rest goes", func(p *pipelinetest.Proxy) {
			p.Fail(1, pipelinetest.OpCalls("DeleteMessageBatch"), http.StatusForbidden, "AccessDenied")
		}, n - pipeline.MaxBatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, p := proxied(t)
			for i := range n {
				for _, job := range []pipeline.JobID{"mine", "theirs"} {
					if err := q.Bury(t.Context(), pipeline.DeadLetter{Job: job, Task: pipeline.WorkTask(i), Reason: pipeline.Fail(pipeline.Lost, "no")}); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.wrong(p)
			removed, err := q.Unbury(t.Context(), "mine")
			if removed != c.want || (err == nil) != (c.want == n) {
				t.Errorf("%d were removed, error %v; want %d", removed, err, c.want)
			}
			letters, _, err := q.DeadLetters(t.Context(), "") // those that could not be removed are held for a minute
			if err != nil {
				t.Fatal(err)
			}
			theirs := 0
			for _, letter := range letters {
				if letter.Job == "theirs" {
					theirs++
				}
			}
			if theirs != n || len(letters) != n {
				t.Errorf("%d letters are left, %d of the other job; want its %d", len(letters), theirs, n)
			}
		})
	}
}
