//go:build deployed

package deployed

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// root of the repository.
const root = "../.."

// built is the folder of what the trials build and write for all of them.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if built, err = os.MkdirTemp("", "holdfast-deployed-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if flag.Lookup("test.run").Value.String() == "" { // all of them: most of their time is waiting
		go func() {
			_, _ = next()
			_, _ = workdBefore()
		}()
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// patience bounds everything that is waited for: a review here takes one minute, on a busy machine several.
const patience = 10 * time.Minute

// bench is the deployment that is tried.
type bench struct {
	t        *testing.T
	stack    string
	endpoint string // of the services
	told     string // endpoint as the processes are told it: {process} stands for the process
	store    string // where the command line keeps its logs
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, stack: "holdfast", endpoint: os.Getenv("HOLDFAST_ENDPOINT"), store: t.TempDir()}
	if b.endpoint == "" {
		b.endpoint = "http://127.0.0.1:4566"
	}
	if b.told = os.Getenv("RECORDER"); b.told == "" { // make record
		b.told = b.endpoint
	}
	return b
}

// standing are the settings of what was deployed last.
var standing []string

// deploy deploys both stacks, or changes them, unless they stand so already.
func (b *bench) deploy(settings ...string) {
	b.t.Helper()
	if standing != nil && slices.Equal(standing, settings) {
		return
	}
	began := time.Now()
	args := []string{"-c", "endpoint=" + b.told}
	for _, each := range settings {
		args = append(args, "-c", each)
	}
	cmd := exec.Command(filepath.Join(root, "localstack/deploy.sh"), args...)
	cmd.Env = append(os.Environ(), "STACK="+b.stack)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("deploy %v: %v\n%s", settings, err, tail(out))
	}
	standing = append([]string{}, settings...)
	b.t.Logf("deployed in %v: %s", time.Since(began).Round(time.Second), strings.Join(settings, " "))
}

func tail(out []byte) string { return string(out[max(0, len(out)-3000):]) }

// says runs the command line against the deployment and returns what it says; it must exit with that code.
func (b *bench) says(code int, args ...string) string {
	b.t.Helper()
	return b.saysBy(filepath.Join(root, "bin/holdfast"), code, args...)
}

// saysBy is says of another version's program.
func (b *bench) saysBy(program string, code int, args ...string) string {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, program,
		append([]string{"--backend", "aws", "--endpoint", b.endpoint, "--stack", b.stack, "--store", b.store, "--tenant", tenant}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.t.Fatalf("holdfast %v: got exit code %d (%v), want %d\n%s%s", args, got, err, code, tail(out.Bytes()), tail(errs.Bytes()))
	}
	if code == failed {
		return out.String() + errs.String()
	}
	return out.String()
}

// outcome is how a review ended, as run --json tells it.
type outcome struct {
	Job    string
	Status string
	Counts struct {
		Cells, Answered, Gated, Failed int
		NotAsked                       int `json:"not_asked"`
	}
	Asked int `json:"calls_asked"`
}

// reviews runs a document to its end; nobody works on it here.
func (b *bench) reviews(code int, document string, args ...string) (o outcome) {
	b.t.Helper()
	said := b.says(code, append([]string{"run", document, "--profile", "compact", "--workers", "0", "--yes", "--json", "--fresh", "--out", b.t.TempDir()}, args...)...)
	if err := json.Unmarshal([]byte(said), &o); err != nil {
		b.t.Fatalf("%v: %s", err, said)
	}
	b.t.Logf("%+v", o)
	return o
}

// reviewing begins a review; over waits for its end.
func (b *bench) reviewing(code int, document string, args ...string) (over func() outcome) {
	ended := make(chan outcome, 1)
	go func() {
		defer close(ended)
		ended <- b.reviews(code, document, args...)
	}()
	return func() outcome {
		b.t.Helper()
		o, is := <-ended
		if !is {
			b.t.FailNow() // it has said why
		}
		return o
	}
}

// until waits until something is so.
func (b *bench) until(what string, is func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("it never came to it that %s", what)
		}
	}
}

// document writes the beginning of a real contract into a file, with some things spread over it.
func (b *bench) document(bytes int, markers ...string) string {
	b.t.Helper()
	body, err := os.ReadFile(filepath.Join(root, "pkg/pipelines/documents/cuad-worldwide-reseller.txt"))
	if err != nil {
		b.t.Fatal(err)
	}
	text := string(body[:bytes])
	for i, marker := range slices.Backward(markers) {
		from := bytes * (i + 1) / (len(markers) + 1)
		at := from + strings.Index(text[from:], "\n\n")
		text = text[:at] + "\n\nThe parties agree to " + marker + " each other." + text[at:]
	}
	path := filepath.Join(b.t.TempDir(), "contract.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// invoke starts a deployed function on one event and returns its answer.
func (b *bench) invoke(function string, event any) (answer []byte, failed bool) {
	b.t.Helper()
	body, err := json.Marshal(event)
	if err != nil {
		b.t.Fatal(err)
	}
	url := fmt.Sprintf("%s/2015-03-31/functions/%s-%s/invocations", b.endpoint, b.stack, function)
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("invoke %s: %s, %v: %s", function, resp.Status, err, answer)
	}
	return answer, resp.Header.Get("X-Amz-Function-Error") != ""
}

// hurry starts the deployed reaper every few seconds until the test ends, beside its own rule: what takes it minutes
// takes the test less.
func (b *bench) hurry() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	b.t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ticker := time.NewTicker(3 * time.Second); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				resp, err := http.Post(fmt.Sprintf("%s/2015-03-31/functions/%s-reap/invocations", b.endpoint, b.stack), "application/json", strings.NewReader(`{}`))
				if err == nil { // its rule comes anyway
					resp.Body.Close()
				}
			}
		}
	}()
}
