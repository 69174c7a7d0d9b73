package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// asProgram makes the test binary the program: its workers are processes.
const asProgram = "HOLDFAST_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// site is a server with a page that is there, one that is not, one that always fails and one that never answers.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	hits map[string]int
}

func newSite(t *testing.T) *site {
	s := &site{hits: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits[r.URL.Path]++
		n := s.hits[r.URL.Path]
		s.mu.Unlock()
		switch {
		case r.URL.Path == "/missing":
			http.NotFound(w, r)
		case r.URL.Path == "/broken":
			http.Error(w, "no", http.StatusInternalServerError)
		case r.URL.Path == "/busy" && n == 1:
			http.Error(w, "later", http.StatusTooManyRequests)
		case r.URL.Path == "/hangs":
			<-r.Context().Done()
		default:
			fmt.Fprintf(w, "page %s", r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

const swift = `
attempt_backoff: 50ms
try_backoff: 20ms
call_timeout: 500ms
`

// program runs the program in dir and wants that exit code.
func program(t *testing.T, dir string, want int, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--policy", "policy.yaml"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asProgram+"=1")
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.String(), told.String())
	}
	return out.String()
}

func TestExample(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	var urls strings.Builder
	for _, path := range []string{"/one", "/missing", "/two", "/broken", "/hangs", "/busy", "/three"} {
		fmt.Fprintf(&urls, "%s%s\n", s.URL, path)
	}
	urls.WriteString("not a url\n")
	for name, body := range map[string]string{"policy.yaml": swift, "urls.txt": urls.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const partial = 3
	var o struct {
		Job    string
		Status string
		Counts struct{ Cells, Answered, Failed int }
	}
	if err := json.Unmarshal([]byte(program(t, dir, partial, "run", "urls.txt", "--handler", "fetch", "--json")), &o); err != nil {
		t.Fatal(err)
	}
	if o.Status != "partial" || o.Counts.Cells != 8 || o.Counts.Answered != 4 || o.Counts.Failed != 4 {
		t.Errorf("got %+v, want 4 of 8 answered, 4 failed, 2 of them abandoned", o)
	}
	hits := map[string]int{"/one": 1, "/two": 1, "/three": 1, "/missing": 1, "/busy": 2, "/broken": 3, "/hangs": 3}
	check := func(when string) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		for path, want := range hits {
			if s.hits[path] != want {
				t.Errorf("%s: %s was fetched %d times, want %d", when, path, s.hits[path], want)
			}
		}
	}
	check("after the run")
	if _, err := os.Stat(filepath.Join(dir, "holdfast-out", o.Job, "answers.jsonl")); err != nil {
		t.Errorf("the report is not in a folder of its job: %v", err)
	}

	for item, says := range map[string][]string{
		"7": {"item 7, line 8 of the file: not a url", "done", "no http or https address", "1 try"},
		"1": {"item 1, line 2 of the file: " + s.URL + "/missing", "done", "404 Not Found", "1 try"},
		"3": {"item 3, line 4 of the file: " + s.URL + "/broken", "abandoned", "attempt 3", "500 Internal Server Error"},
		"4": {"item 4, line 5 of the file: " + s.URL + "/hangs", "abandoned", "attempt 3", "timed_out", "no end within 500ms"},
	} {
		why := program(t, dir, 0, "why", o.Job, item)
		for _, text := range says {
			if !strings.Contains(strings.Join(strings.Fields(why), " "), text) {
				t.Errorf("why %s does not say %q:\n%s", item, text, why)
			}
		}
	}
	if letters := program(t, dir, 0, "dead-letters"); strings.Count(letters, "abandoned") != 2 {
		t.Errorf("want two dead letters:\n%s", letters)
	}

	program(t, dir, 0, "worker", "--idle") // the queue is quiet: there is nothing to do
	program(t, dir, partial, "run", "urls.txt", "--handler", "fetch@1")
	check("after the same again")
}
