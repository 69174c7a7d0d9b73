package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/cli"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
)

// realRun is what `holdfast run --json` tells of a run.
type realRun struct {
	Job      pipeline.JobID     `json:"job"`
	Status   pipeline.JobStatus `json:"status"`
	Counts   pipeline.Counts    `json:"counts"`
	Killed   int                `json:"workers_killed"`
	InFlight int                `json:"in_flight_asked_again"`
	Again    int                `json:"stored_asked_again"`
	Witness  bool               `json:"witness"`
	Spend    pipeline.Spend     `json:"spend"`
}

// contract is the shipped sample, and so much more of it again, with other words, that the whole has a job's size.
func contract(full bool) string {
	text := pipelines.SampleContract()
	if !full {
		return text[:strings.LastIndex(text[:9000], "\n\n")]
	}
	more := strings.NewReplacer("Reseller", "Dealer", "RESELLER", "DEALER", "reseller", "dealer").Replace(text)
	return text + "\n\n" + more[:strings.LastIndex(more[:len(more)*48/100], "\n\n")]
}

// realJob runs the shipped contract review in worker processes, over the store in a file, with SIGKILL.
func realJob(t *testing.T, p *printer, full bool) {
	dir := t.TempDir()
	doc, ledger := filepath.Join(dir, "contract.txt"), filepath.Join(dir, "ledger.log")
	if err := os.WriteFile(doc, []byte(contract(full)), 0o600); err != nil {
		t.Fatal(err)
	}
	faults := "throttled=2.5%,unavailable=1.5%,malformed=0.9%,crash=0.1%"
	args := []string{"--store", filepath.Join(dir, "store"), "run", doc, "--workers", "3", "--fail", faults, "--ledger", ledger, "--out", filepath.Join(dir, "out"), "--json"}
	if full {
		args = append(args, "--concurrency", "48", "--pace", "250ms", "--kill", "3")
	} else {
		args = append(args, "--concurrency", "12", "--profile", "compact", "--kill", "1")
	}
	p.say("For real: the shipped contract review, 3 worker processes over one SQLite file, --fail '%s', SIGKILL on the way.", faults)
	t.Setenv(asProgram, "1")
	var out, errOut bytes.Buffer
	if code := cli.Main(args, &out, &errOut); code != 0 {
		t.Fatalf("holdfast run: exit code %d\n%s", code, errOut.String())
	}
	var r realRun
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("holdfast run --json printed %q: %v", out.String(), err)
	}
	entries, err := offline.ReadLedger(ledger)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	for _, e := range entries {
		if e.Event == offline.Begin {
			tries++
		}
	}
	p.table(
		[]string{"job", string(r.Status)},
		[]string{"cells answered", number(r.Counts.Answered) + " of " + number(r.Counts.Cells)},
		[]string{"worker processes killed", number(r.Killed)},
		[]string{"tries that the model was asked", number(tries)},
		[]string{"stored answers asked again", number(r.Again)},
		[]string{"calls in flight at a kill, asked again", number(r.InFlight)},
	)
	if r.Status != pipeline.JobCompleted || r.Counts.Answered != r.Counts.Cells || !r.Witness || r.Again > 0 || r.Killed == 0 {
		t.Errorf("the job is %s, %d of %d cells answered, %d stored answers asked again, %d workers killed (witness: %v)",
			r.Status, r.Counts.Answered, r.Counts.Cells, r.Again, r.Killed, r.Witness)
	}
}
