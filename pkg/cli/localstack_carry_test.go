//go:build localstack

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

// A job that began in a folder goes on in LocalStack from the answers that it had, and its report is the same there.
func TestOnLocalStackCarriedFromAFolder(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	folder := func(args ...string) []string { return append([]string{"--backend", "embedded"}, args...) }
	doc := d.doc("contract.txt", contract(0, 9000))
	file := filepath.Join(d.dir, "job.jsonl")
	t.Setenv("HOLDFAST_BACKEND", embeddedBackend)
	before := d.runs(exitPartial, doc, "--fail", "refused=5%")
	d.does(exitCompleted, folder("admin", "export", string(before.Job), "--out", file)...)
	report := func(backend string) string {
		t.Helper()
		t.Setenv("HOLDFAST_BACKEND", backend)
		d.does(exitCompleted, "report", string(before.Job), "--out", d.out)
		body, err := os.ReadFile(filepath.Join(d.out, "findings.json"))
		d.must(err)
		return strings.ReplaceAll(string(body), " --store "+d.store, "") // of the command that asks again
	}
	want := report(embeddedBackend)
	t.Setenv("HOLDFAST_BACKEND", awsBackend)
	for range 2 {
		d.says(d.does(exitCompleted, "admin", "import", file), string(before.Job), "partial", d.backend.Stack)
	}
	if got := report(awsBackend); got != want {
		t.Errorf("the report of the job that was carried differs: %d bytes, was %d", len(got), len(want))
	}
	asked := d.asked()
	d.does(exitCompleted, "redrive", string(before.Job))
	d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger)
	job, err := d.system().Backend.Store.Job(t.Context(), before.Job)
	d.must(err)
	if n := d.asked() - asked; job.Status != pipeline.JobCompleted || n > before.Counts.Cells-before.Counts.Answered {
		t.Errorf("after a redrive there it is %s, and %d calls were asked; want completed, and only the %d that were missing", job.Status, n, before.Counts.Cells-before.Counts.Answered)
	}
}
