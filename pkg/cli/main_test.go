package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

// Variables by which a test tells the processes that it starts what to be.
const (
	asProgram = "HOLDFAST_TEST_PROGRAM" // be the program, not the test
	killDir   = "HOLDFAST_TEST_KILLS"   // folder of tokens; whoever takes one dies
)

// TestMain is the program where a test started it as one: `holdfast worker` and its like are the real commands.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	dir := os.Getenv(killDir)
	if dir != "" {
		installKills(dir)
	}
	code := Main(os.Args[1:], os.Stdout, os.Stderr)
	if dir != "" {
		tell(dir, fmt.Sprintf("exit %d %s", code, os.Getenv(workerName)))
	}
	os.Exit(code)
}

// installKills makes the process act at the points that tokens in dir name, each point once over all processes:
//
//	split-<op>-<before|after>-<job>      at that write about a job's split
//	finalize-<op>-<before|after>-<job>   at that write about a job's finalize
//	claim-<task>                         before that task is claimed
//	write-<n>                            before the nth write of the process
//	line-<n>-<begin|answered>            at a question, once the ledger has n lines
//
// What it does is what the token's file says.
func installKills(dir string) {
	k := &kills{dir: dir}
	between.backend = func(b *wiring.Backend) *wiring.Backend {
		b.Store = pipelinetest.Wrap(b.Store, k.write)
		return b
	}
	between.model = func(m pipeline.Model) pipeline.Model { return killingModel{m, k} }
}

// What a token's file may say.
const (
	die    = ""       // SIGKILL
	stop   = "stop"   // SIGSTOP, and go on after SIGCONT
	say    = "say"    // tell the test, and go on
	always = "always" // SIGKILL, and the token stays
)

type kills struct {
	dir    string
	writes atomic.Int64
}

func (k *kills) write(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
	if !op.Write {
		return do(ctx)
	}
	k.numbered("write-", k.writes.Add(1))
	if _, task, found := strings.Cut(op.On, "/"); found && op.Name == "Claim" {
		k.take("claim-" + task)
	}
	k.named(op, "before")
	err := do(ctx)
	k.named(op, "after")
	return err
}

// named takes the token of a write about a split or a finalize.
func (k *kills) named(op pipelinetest.Op, when string) {
	for _, step := range []string{"split", "finalize"} {
		if !strings.Contains(op.On, step) && !(step == "finalize" && op.Name == "SetJob") && !(step == "split" && (op.Name == "PutTasks" || strings.HasSuffix(op.On, "manifest"))) {
			continue
		}
		job, _, _ := strings.Cut(op.On, "/")
		k.take(fmt.Sprintf("%s-%s-%s-%s", step, op.Name, when, job))
	}
}

// numbered takes a token whose number has been reached.
func (k *kills) numbered(prefix string, n int64) {
	tokens, _ := filepath.Glob(filepath.Join(k.dir, prefix+"*"))
	for _, token := range tokens {
		name := strings.TrimPrefix(filepath.Base(token), prefix)
		if at, err := strconv.ParseInt(name, 10, 64); err == nil && n >= at {
			k.take(filepath.Base(token))
		}
	}
}

// take does what the token says if it is there: removing it is what makes it one process's.
func (k *kills) take(token string) {
	path := filepath.Join(k.dir, token)
	does, err := os.ReadFile(path)
	if err != nil || (string(does) != always && os.Remove(path) != nil) {
		return
	}
	switch string(does) {
	case say:
		tell(k.dir, token)
	case stop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	default:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// told is the pipe beside the tokens through which processes tell the test what they did.
const told = "told"

// tell tells the test, if it listens.
func tell(dir, what string) {
	pipe, err := os.OpenFile(filepath.Join(filepath.Dir(dir), told), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer pipe.Close()
	fmt.Fprintln(pipe, what)
}

// killingModel dies before a question, or after its answer and before that is stored.
type killingModel struct {
	pipeline.Model
	k *kills
}

func (m killingModel) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	m.line("begin")
	response, err := m.Model.Complete(ctx, r)
	m.line("answered")
	return response, err
}

func (m killingModel) line(when string) {
	tokens, _ := filepath.Glob(filepath.Join(m.k.dir, "line-*-"+when))
	if len(tokens) == 0 {
		return
	}
	ledger, _ := os.ReadFile(filepath.Join(filepath.Dir(m.k.dir), "ledger.log"))
	lines := bytes.Count(ledger, []byte("{"))
	for _, token := range tokens {
		name := filepath.Base(token)
		var at int
		if _, err := fmt.Sscanf(name, "line-%d-", &at); err == nil && lines >= at {
			m.k.take(name)
		}
	}
}

// program is this test binary as the program.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// holdfast runs a command in this process; its workers are processes.
func holdfast(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv(asProgram, "1")
	var stdout, stderr bytes.Buffer
	code = Main(args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// contract is a part of the sample contract, cut at paragraphs: about n bytes from the given offset.
func contract(from, n int) string {
	text := pipelines.SampleContract()[from:]
	if cut := strings.Index(text[n:], "\n\n"); cut >= 0 {
		n += cut
	}
	return text[:n]
}

// signed is a text of which no part is one of another party's.
func signed(text, party string) string {
	return strings.ReplaceAll(text+"\n\n", "\n\n", " ("+party+")\n\n")
}

// write puts a file into dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// swiftPolicy is the shipped one with short claims and short waits.
const swiftPolicy = `claim_ttl: 2s
renew_every: 500ms
max_skew: 500ms
max_deferrals: 500
deferral_backoff: 100ms
attempt_backoff: 100ms
try_backoff: 100ms
`

// quickPolicy is the shipped one with short claims and many attempts, for tests that kill a lot.
const quickPolicy = `claim_ttl: 2s
renew_every: 500ms
max_skew: 500ms
max_attempts: 60
max_receives: 100
max_deferrals: 500
`
