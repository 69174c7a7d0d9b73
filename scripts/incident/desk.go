package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/cli"
	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
	"holdfast/pkg/wiring/embedded"
)

// desk is a person with a folder, a store in it and several terminals: everything on it is real.
type desk struct {
	*testing.T
	dir, self, policy string
	log               bytes.Buffer // of the worker processes
}

func newDesk(t *testing.T, policy string) *desk {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, dir: t.TempDir(), self: self}
	d.policy = d.write("policy.yaml", policy)
	t.Setenv(asProgram, "1")
	t.Setenv(decodesFile, filepath.Join(d.dir, "decodes.log"))
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) write(name, body string) string {
	d.Helper()
	path := filepath.Join(d.dir, name)
	d.must(os.WriteFile(path, []byte(body), 0o600))
	return path
}

// args puts the global flags before a command.
func (d *desk) args(args ...string) []string {
	return append([]string{"--store", filepath.Join(d.dir, "store"), "--policy", d.policy}, args...)
}

// does runs a command that must end with that exit code.
func (d *desk) does(want int, args ...string) string {
	d.Helper()
	var out, errOut bytes.Buffer
	if code := cli.Main(d.args(args...), &out, &errOut); code != want {
		d.Fatalf("holdfast %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.String(), errOut.String())
	}
	return out.String()
}

// runs runs the list of files through the decoder, to the end of the job.
func (d *desk) runs(list string, timeout time.Duration) (r realRun) {
	d.Helper()
	out := d.does(3, append([]string{"run", list, "--workers", "2", "--concurrency", "4", "--out", filepath.Join(d.dir, "out"), "--json"}, d.exec(timeout)...)...)
	d.must(json.Unmarshal([]byte(out), &r))
	return r
}

func (d *desk) exec(timeout time.Duration) []string {
	return []string{"--exec", d.self + " decode {}", "--try-timeout", timeout.String()}
}

// worker starts a worker process; stop drains it and waits for its exit.
func (d *desk) worker() (stop func()) {
	d.Helper()
	cmd := exec.Command(d.self, d.args("worker", "--allow-exec", "--supervised", "--concurrency", "4")...)
	cmd.Stdout, cmd.Stderr = io.Discard, &d.log
	in, err := cmd.StdinPipe()
	d.must(err)
	d.must(cmd.Start())
	return func() {
		d.Helper()
		_ = in.Close() // it drains at the end of its input
		if err := cmd.Wait(); err != nil {
			d.Errorf("the worker: %v\n%s", err, d.log.String())
		}
	}
}

// store opens the store beside the workers.
func (d *desk) store() *wiring.System {
	d.Helper()
	policy, err := config.LoadPolicy(d.policy)
	d.must(err)
	back, err := embedded.Open(context.Background(), embedded.Config{Dir: filepath.Join(d.dir, "store")}, policy)
	d.must(err)
	d.Cleanup(func() { _ = back.Close() })
	return wiring.New(back, wiring.Config{Tenant: "local", Worker: "desk", Policy: policy})
}

// until looks until it is so.
func (d *desk) until(so func() bool) {
	for !so() {
		time.Sleep(20 * time.Millisecond)
	}
}

// decodes is how often each file was begun to be decoded, by the decoder's own word.
func (d *desk) decodes() map[string]int {
	d.Helper()
	body, err := os.ReadFile(filepath.Join(d.dir, "decodes.log"))
	d.must(err)
	n := map[string]int{}
	for line := range strings.Lines(string(body)) {
		n[strings.TrimSpace(line)]++
	}
	return n
}

// total is all of them.
func total(n map[string]int) (sum int) {
	for _, one := range n {
		sum += one
	}
	return sum
}

// depth is what the queues hold, visible or in flight.
func depth(t *testing.T, s *wiring.System) (n int) {
	t.Helper()
	for _, q := range []pipeline.Queue{s.Backend.Queues.Control, s.Backend.Queues.Work} {
		visible, inFlight, err := q.Depth(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		n += visible + inFlight
	}
	return n
}
