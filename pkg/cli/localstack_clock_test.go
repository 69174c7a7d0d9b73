//go:build localstack

package cli

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// Case D-04 (b), (c): a worker whose clock differs from the store's does nothing and says why; one with a right clock
// does the work.
func TestOnLocalStackWithAWrongClock(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	s := d.system()
	_, out, _ := d.holdfast("submit", d.doc("contract.txt", contract(0, 2000)), "--profile", "compact", "--start")
	id := pipeline.JobID(strings.TrimSpace(out))
	proxy := pipelinetest.NewProxy(t, d.backend.Endpoint)
	looked := make(chan struct{}, 100)
	proxy.Dated(func(now time.Time) string { return now.Add(-90 * time.Second).UTC().Format(http.TimeFormat) }, looked)
	t.Setenv("HOLDFAST_ENDPOINT", proxy.URL)
	ahead := d.starts("worker", "--ledger", d.ledger)
	for range 20 { // so many requests of its were answered
		<-looked
	}
	if row := d.task(s, id, pipeline.SplitTask); row.Generation != 0 {
		t.Errorf("a worker that is 90 s ahead claimed: %s", pipeline.Encode(row))
	}
	t.Setenv("HOLDFAST_ENDPOINT", d.backend.Endpoint)
	d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger)
	if job, err := s.Backend.Store.Job(t.Context(), id); err != nil || job.Status != pipeline.JobCompleted {
		t.Errorf("the job is %s, error %v; want completed", job.Status, err)
	}
	_ = ahead.Process.Signal(syscall.SIGTERM)
	d.says(ahead.ends(exitCompleted), "clock differs")
}
