package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// A job that was paused in the middle of its stages goes on elsewhere without asking anything again: the answers of
// stages that are open are carried too.
func TestCarriedInTheMiddleOfAStage(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	t.Setenv(backendVar, embeddedBackend) // from a folder to a folder: localstack_carry_test.go carries between backends
	d.backend = backendFlags{}
	d.token("line-20-answered", say)
	_, out, _ := d.holdfast("submit", d.doc("contract.txt", contract(0, 9000)), "--profile", "compact", "--start")
	job := strings.TrimSpace(out)
	worker := d.starts("worker", "--ledger", d.ledger, "--pace", "300ms", "--concurrency", "6", "--claims", "2")
	d.hears("line-20-answered")
	d.does(exitCompleted, "pause", job)
	s := d.system()
	for d.claimed(s, job) { // calls in flight finish
		d.must(pipeline.NewRealClock().Sleep(t.Context(), 20*time.Millisecond))
	}
	d.must(worker.Process.Signal(syscall.SIGTERM))
	worker.ends(exitCompleted)
	rows := d.rows(s, pipeline.JobID(job))
	accepted := 0
	for _, row := range rows {
		for stage := 1; stage <= row.Accepted; stage++ {
			item, err := s.Backend.Store.Item(t.Context(), row.Job, pipeline.BodyKey(row.ID, stage, row.Body(stage)))
			d.must(err)
			body, err := pipeline.Decode[pipeline.StageBody](item, "body")
			d.must(err)
			accepted += len(body.Cells)
		}
	}
	asked := d.asked()
	if asked <= accepted || asked >= 28*len(rows) {
		t.Fatalf("%d of %d calls were asked, %d of stages that were accepted: no stage is open in the middle", asked, 28*len(rows), accepted)
	}
	file := filepath.Join(d.dir, "job.jsonl")
	d.does(exitCompleted, "admin", "export", job, "--out", file)
	d.store = filepath.Join(d.dir, "other")
	d.does(exitCompleted, "admin", "import", file)
	d.does(exitCompleted, "resume", job)
	d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger)
	ended, err := d.system().Backend.Store.Job(t.Context(), pipeline.JobID(job))
	d.must(err)
	if n := d.asked(); ended.Status != pipeline.JobCompleted || n != 28*len(rows) {
		t.Errorf("the job is %s after %d calls, %d of them before it was carried; want it completed after %d, each asked once", ended.Status, n, asked, 28*len(rows))
	}
}

// claimed says that somebody works on a job.
func (d *desk) claimed(s *wiring.System, job string) bool {
	d.Helper()
	rows, err := pipeline.AllTasks(d.Context(), s.Backend.Store, pipeline.JobID(job))
	d.must(err)
	for _, row := range rows {
		if row.Status == pipeline.TaskClaimed {
			return true
		}
	}
	return false
}
