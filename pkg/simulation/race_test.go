//go:build race

package simulation_test

import (
	"os"
	"os/exec"
	"testing"
)

// With the race detector the runtime lets goroutines go on in an order that it draws, and of those that arrive together
// the first is another one each time. So what is said of one seed is tested beside it, in a test binary of its own.
func TestReplaysBesideTheRaceDetector(t *testing.T) {
	replays := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-count", "1", "-v", "-run", "^(TestOne|TestFaultsThatAre|TestEvery|TestABroken)", ".")
	replays.Env = os.Environ()
	out, err := replays.CombinedOutput()
	if err != nil || len(out) < 100 {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
