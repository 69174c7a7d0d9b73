//go:build deployed

package deployed

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast/pkg/telemetry/alarmtest"
)

// process is workd while it runs.
type process struct {
	b       *bench
	cmd     *exec.Cmd
	ended   chan error
	stopped bool
	out     lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// said is what it has logged.
func (p *process) said() string {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.b.String()
}

// workd starts the polling process with the environment that the stack puts out; the program is "" for that of this
// version.
func (b *bench) workd(program string, env ...string) *process {
	b.t.Helper()
	told := b.workdEnvironment()
	if program == "" {
		program = filepath.Join(root, "dist", runtime.GOARCH, "image/workd")
	} else {
		told = append(told, "HOLDFAST_ENDPOINT="+b.endpoint) // what other versions ask of AWS is not what the roles are compared with
	}
	p := &process{b: b, cmd: exec.Command(program), ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = slices.Concat(os.Environ(), told, []string{
		"HOLDFAST_HEALTH_ADDRESS=127.0.0.1:0", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}, env)
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	b.t.Cleanup(p.stop)
	return p
}

// workdEnvironment is what the stack that stands now tells a workd.
func (b *bench) workdEnvironment() (told []string) {
	b.t.Helper()
	written, err := os.ReadFile(filepath.Join(root, "cdk/cdk.out/outputs.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var stacks map[string]struct{ WorkdEnvironment string }
	if err := json.Unmarshal(written, &stacks); err != nil {
		b.t.Fatal(err)
	}
	var variables map[string]string
	if err := json.Unmarshal([]byte(stacks[b.stack+"-workers"].WorkdEnvironment), &variables); err != nil {
		b.t.Fatalf("what the stack puts out for workd: %v", err)
	}
	for name, value := range variables {
		told = append(told, name+"="+value)
	}
	return told
}

// stop asks it to end, and waits until it has.
func (p *process) stop() {
	if p.stopped {
		return
	}
	p.stopped = true
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			p.b.t.Errorf("workd: %v\n%s", err, tail([]byte(p.said())))
		}
	case <-time.After(2 * time.Minute):
		_ = p.cmd.Process.Kill()
		p.b.t.Errorf("workd did not stop in its two minutes\n%s", tail([]byte(p.said())))
	}
}

// worked says that whoever wrote a log finished cells.
func (b *bench) worked(who, log string) {
	b.t.Helper()
	var seen alarmtest.Seen
	if err := seen.ReadLog(log); err != nil {
		b.t.Fatal(err)
	}
	cells := seen.Of(alarmtest.Metric{Namespace: "Holdfast", Name: "CellsFinished", Dimensions: "Stack=" + b.stack})
	b.t.Logf("%s finished %v cells", who, cells)
	if cells == 0 {
		b.t.Errorf("%s did nothing: %s", who, tail([]byte(log)))
	}
}

// freezes stops the processes of a deployed function in the middle of an event, as a machine does that hangs: until the
// function's time is over. It waits until there is such an event.
func (b *bench) freezes(function string) {
	b.t.Helper()
	var frozen []int
	b.until(function+" holds a claim and is frozen", func() bool {
		held := b.rows("#status = :claimed AND begins_with(claimed_by, :who)", map[string]any{":claimed": text("claimed"), ":who": text(function + "-")})
		if len(held) == 0 {
			return false
		}
		for _, pid := range b.processes(function) {
			if syscall.Kill(pid, syscall.SIGSTOP) == nil {
				frozen = append(frozen, pid)
			}
		}
		return len(frozen) > 0
	})
	b.t.Cleanup(func() { // those that nobody has ended
		for _, pid := range b.processes(function) {
			if slices.Contains(frozen, pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
}

// processes are those of a function of this deployment, on this LocalStack.
func (b *bench) processes(function string) (pids []int) {
	b.t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(environments) == 0 {
		b.t.Fatalf("the processes of this machine cannot be seen in /proc: %v", err)
	}
	for _, path := range environments {
		body, err := os.ReadFile(path)
		if err != nil {
			continue // it is another's, or is gone
		}
		env := "\x00" + string(body)
		if strings.Contains(env, "\x00AWS_LAMBDA_FUNCTION_NAME="+b.stack+"-"+function+"\x00") &&
			strings.Contains(env, "\x00HOLDFAST_ENDPOINT="+strings.ReplaceAll(b.told, "{process}", function)+"\x00") {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
