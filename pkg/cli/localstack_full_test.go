//go:build localstack

package cli

import (
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"holdfast/pkg/pipelines"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/view"
)

// One run at full size: 22 chunks x 116 calls, 5 % of the tries failing, three worker processes of which two are
// killed. Every cell is answered; the line says what it took.
func TestOnLocalStackFullSize(t *testing.T) {
	d := newDesk(t, "")
	target, err := url.Parse(d.backend.Endpoint)
	d.must(err)
	meter := pipelinetest.NewMeteredProxy(t, httputil.NewSingleHostReverseProxy(target))
	t.Setenv("HOLDFAST_ENDPOINT", meter.URL)
	begun := time.Now()
	code, out, errOut := d.holdfast("run", d.doc("contract.txt", pipelines.SampleContract()), "--ledger", d.ledger, "--out", d.out,
		"--workers", "3", "--concurrency", "48", "--kill", "2", "--fail", "throttled=3%,unavailable=1%,malformed=1%")
	if code != exitCompleted {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	s := d.system()
	job := d.job(s)
	result, err := view.Result(t.Context(), s, job)
	d.must(err)
	calls := result.Counts.Cells
	if result.Counts.Answered+result.Counts.Gated != calls || len(result.Missing) > 0 {
		t.Errorf("%d of %d cells answered, %d missing", result.Counts.Answered, calls, len(result.Missing))
	}
	d.says(out, "0 stored answers asked again", "2 workers killed")
	for _, line := range meter.Lines(calls) {
		t.Log(line)
	}
	sum := meter.Total()
	t.Logf("LocalStack with dynoxide: %d chunks, %d calls, %d tries: %d requests, %.0f write units, %v, $%.2f per million calls",
		len(d.rows(s, job.ID)), calls, result.Spend.Tries, sum.Requests, sum.Writes, time.Since(begun).Round(time.Second), meter.Price()/float64(calls)*1e6)
}
