//go:build deployed

package deployed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root of the repository.
const root = "../.."

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

// deploy deploys both stacks, or changes them.
func (b *bench) deploy(settings ...string) {
	b.t.Helper()
	args := []string{"-c", "endpoint=" + b.told}
	for _, each := range settings {
		args = append(args, "-c", each)
	}
	cmd := exec.Command(filepath.Join(root, "localstack/deploy.sh"), args...)
	cmd.Env = append(os.Environ(), "STACK="+b.stack)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("deploy %v: %v\n%s", settings, err, tail(out))
	}
}

func tail(out []byte) string { return string(out[max(0, len(out)-3000):]) }

// says runs the command line against the deployment and returns what it says; it must exit with that code.
func (b *bench) says(code int, args ...string) string {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin/holdfast"),
		append([]string{"--backend", "aws", "--endpoint", b.endpoint, "--stack", b.stack, "--store", b.store, "--tenant", tenant}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.t.Fatalf("holdfast %v: got exit code %d (%v), want %d\n%s%s", args, got, err, code, tail(out.Bytes()), tail(errs.Bytes()))
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

// document writes the beginning of a real contract into a file, with something in the middle of it.
func (b *bench) document(bytes int, marker string) string {
	b.t.Helper()
	body, err := os.ReadFile(filepath.Join(root, "pkg/pipelines/documents/cuad-worldwide-reseller.txt"))
	if err != nil {
		b.t.Fatal(err)
	}
	text := string(body[:bytes])
	if marker != "" {
		at := bytes/2 + strings.Index(text[bytes/2:], "\n\n")
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

// workd starts the polling process with the deployment's environment, until stop.
func (b *bench) workd(env ...string) (stop func()) {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(root, "dist", runtime.GOARCH, "image/workd"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), append([]string{
		"HOLDFAST_STACK=" + b.stack, "HOLDFAST_ENDPOINT=" + strings.ReplaceAll(b.told, "{process}", "workd"), "HOLDFAST_BUCKET=" + b.stack + "-blobs",
		"HOLDFAST_MODEL=offline", "HOLDFAST_HEALTH_ADDRESS=127.0.0.1:0", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}, env...)...)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	once := false
	stop = func() {
		if once {
			return
		}
		once = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				b.t.Errorf("workd: %v\n%s", err, tail(said.Bytes()))
			}
		case <-time.After(2 * time.Minute):
			_ = cmd.Process.Kill()
			b.t.Errorf("workd did not stop in its two minutes\n%s", tail(said.Bytes()))
		}
	}
	b.t.Cleanup(stop)
	return stop
}
