// Package localstack has the scripts that start and stop LocalStack on one machine. Its tests need no LocalStack.
package localstack

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// script runs one with a cache of its own.
func script(t *testing.T, name, cache string, env ...string) (text string, ok bool) {
	t.Helper()
	cmd := exec.Command("./" + name)
	cmd.Env = append(append(os.Environ(), "LOCALSTACK_CACHE="+cache, "LOCALSTACK_PORT=1", "DYNOXIDE="), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestUpSaysWhatIsMissing(t *testing.T) {
	refuses := func(name, want, cache string, env ...string) {
		t.Helper()
		if text, ok := script(t, "up.sh", cache, env...); ok || !strings.Contains(text, want) {
			t.Errorf("%s: it says %q, want that it fails and says %q", name, text, want)
		}
	}
	refuses("no Python", "no-such-python is missing: install Python", t.TempDir(), "PYTHON=no-such-python")

	taken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer taken.Close()
	port := taken.URL[strings.LastIndex(taken.URL, ":")+1:]
	refuses("another service", "something else answers at "+taken.URL, t.TempDir(), "LOCALSTACK_PORT="+port)

	cache := t.TempDir()
	requirements, err := os.ReadFile("requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, "requirements.txt"), requirements, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("no dynoxide and no cargo", "no cargo to compile it: install Rust, or set DYNOXIDE", cache, "PATH="+only(t, "bash", "env", "dirname", "cmp", "mkdir", "curl", "python3", "cat"))
}

func TestDynoxideRunsACommandBesideIt(t *testing.T) {
	run := func(env ...string) (string, error) {
		cmd := exec.Command("./dynoxide.sh", "sh", "-c", "echo at $AWS_ENDPOINT_URL_DYNAMODB; exit 7")
		cmd.Env = append(append(os.Environ(), "LOCALSTACK_CACHE="+t.TempDir()), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if text, err := run("DYNOXIDE=/no/such/dynoxide"); err == nil || !strings.Contains(text, "make localstack installs it, or set DYNOXIDE") {
		t.Errorf("there is no dynoxide: it says %q, want that it fails and says what to do", text)
	}
	taken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	port := taken.URL[strings.LastIndex(taken.URL, ":")+1:]
	serving := filepath.Join(t.TempDir(), "dynoxide") // listens where it is told, as dynoxide does
	body := "#!/usr/bin/env python3\nimport socketserver, sys\nsocketserver.TCPServer.allow_reuse_address = True\n" +
		"socketserver.TCPServer(('127.0.0.1', int(sys.argv[5])), socketserver.BaseRequestHandler).serve_forever()\n"
	if err := os.WriteFile(serving, []byte(body), 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := run("DYNOXIDE="+serving, "DYNOXIDE_PORT="+port); err == nil || !strings.Contains(text, "something else answers") {
		t.Errorf("the port is taken: it says %q, want that it fails and says so", text)
	}
	taken.Close()
	text, err := run("DYNOXIDE="+serving, "DYNOXIDE_PORT="+port)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.Contains(text, "at http://127.0.0.1:"+port) {
		t.Errorf("it says %q and ends with %v, want the command's own word and end", text, err)
	}
	if _, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		t.Error("dynoxide was left running")
	}
}

// only is a path with these programs and no others.
func only(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDownStopsOnlyItsOwn(t *testing.T) {
	if text, ok := script(t, "down.sh", t.TempDir()); !ok || !strings.Contains(text, "not running") {
		t.Errorf("nothing was started: it says %q", text)
	}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	cache := t.TempDir()
	if err := os.WriteFile(filepath.Join(cache, "pid"), []byte(strconv.Itoa(other.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, ok := script(t, "down.sh", cache); !ok || !strings.Contains(text, "not running") {
		t.Errorf("the pid is another process's: it says %q", text)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process was stopped: %v", err)
	}
}

func TestVersionsArePinned(t *testing.T) {
	for file, want := range map[string]string{
		"requirements.txt": `localstack-core\[[a-z,-]+\]==\d+\.\d+\.\d+`,
		"up.sh":            `dynoxide_version=\d+\.\d+\.\d+`,
		"compose.yaml":     `image: localstack/localstack:\d+\.\d+\.\d+`,
	} {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).Match(body) {
			t.Errorf("%s pins no version: want %s", file, want)
		}
	}
	compose, _ := os.ReadFile("compose.yaml")
	for _, line := range regexp.MustCompile(`"[^"]*4566:4566"`).FindAllString(string(compose), -1) {
		if !strings.HasPrefix(line, `"127.0.0.1:`) {
			t.Errorf("%s listens beyond this machine", line)
		}
	}
}

func TestDeploySaysWhatIsMissing(t *testing.T) {
	if text, ok := script(t, "deploy.sh", t.TempDir()); ok || !strings.Contains(text, "LocalStack does not answer at http://127.0.0.1:1: make localstack") {
		t.Errorf("it says %q, want that it fails and says what to start", text)
	}
	healthy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer healthy.Close()
	port := healthy.URL[strings.LastIndex(healthy.URL, ":")+1:]
	if text, ok := script(t, "deploy.sh", t.TempDir(), "LOCALSTACK_PORT="+port, "CDK_APP=/nowhere"); ok || !strings.Contains(text, "there is no /nowhere: make cdk-app") {
		t.Errorf("it says %q, want that it fails and says what to build", text)
	}
}
