//go:build localstack

package cli

import (
	"net/http/httptest"
	"testing"

	"holdfast/pkg/modelsim"
	"holdfast/pkg/offline"
	"holdfast/pkg/view"
)

// The model is outside all workers, and counts at its socket: workers that are killed cost no more than what they had
// in flight, and one answer in twenty that fails on command costs nothing twice.
func TestOnLocalStackBillsAtTheSocket(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	faults, err := offline.ParseFaults("throttled=3%,unavailable=2%")
	d.must(err)
	sim := &modelsim.Server{Model: offline.New(offline.Config{Faults: faults, Pace: 50e6})}
	server := httptest.NewServer(sim)
	defer server.Close()
	const concurrency, kills = 16, 2
	o := d.runs(exitCompleted, d.doc("contract.txt", contract(0, 14_000)), "--model", "openai/offline", "--model-url", server.URL, "--workers", "2", "--kill", "2")
	if o.Killed != kills {
		t.Errorf("%d workers were killed, want %d", o.Killed, kills)
	}
	s := d.system()
	result, err := view.Result(t.Context(), s, d.job(s))
	d.must(err)
	billed, again := sim.Billed()
	if result.Counts.Answered+result.Counts.Gated != result.Counts.Cells || billed < result.Counts.Answered {
		t.Errorf("%d of %d cells answered, %d gated; %d answers were billed", result.Counts.Answered, result.Counts.Cells, result.Counts.Gated, billed)
	}
	if again > kills*concurrency/2 {
		t.Errorf("%d of %d answers were billed again, want at most the %d in flight at %d kills", again, billed, kills*concurrency/2, kills)
	}
	t.Logf("%d answers billed at the socket, %d of them again, after %d kills with %d calls in flight each", billed, again, kills, concurrency/2)
}
