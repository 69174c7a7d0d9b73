//go:build race

package spec

import (
	"os"
	"os/exec"
	"testing"
)

// A search is one goroutine over millions of states: the race detector finds nothing there and takes ten times as long.
// So the searches run beside it, in a test binary of their own.
func TestTheSearchesBesideTheRaceDetector(t *testing.T) {
	search := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-count", "1", "-v", "-run", "^(TestEvery|TestWithout|TestASearch)", ".")
	search.Env = os.Environ()
	out, err := search.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !search.ProcessState.Success() || len(out) < 1000 {
		t.Fatalf("the searches said too little:\n%s", out)
	}
	t.Logf("%s", out)
}
