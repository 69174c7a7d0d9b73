//go:build localstack

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// shell is a terminal without variables of ours, in which the program is called holdfast.
type shell struct {
	*desk
	bin string
}

func newShell(d *desk) *shell {
	d.Helper()
	s := &shell{desk: d, bin: filepath.Join(d.dir, "bin")}
	d.must(os.Mkdir(s.bin, 0o700))
	d.must(os.Symlink(program(d.T), filepath.Join(s.bin, "holdfast")))
	return s
}

// line is a line that is typed.
func (s *shell) line(line string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), "sh", "-c", line)
	cmd.Dir = s.dir
	for _, said := range os.Environ() {
		if !strings.HasPrefix(said, "HOLDFAST_") && !strings.HasPrefix(said, "PATH=") && !strings.HasPrefix(said, "AWS_") {
			cmd.Env = append(cmd.Env, said)
		}
	}
	cmd.Env = append(cmd.Env, asProgram+"=1", "PATH="+s.bin+":"+os.Getenv("PATH"))
	return cmd
}

// types runs a line, wants that exit code, and returns what was printed.
func (s *shell) types(want int, line string) string {
	s.Helper()
	cmd := s.line(line)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.Fatalf("%s: %v", line, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		s.Fatalf("%s: exit code %d, want %d\n%s", line, got, want, out)
	}
	return string(out)
}

// suggestion is a command in a text: up to the end of its line, or to what goes on behind it.
var suggestion = regexp.MustCompile(`(?:: +|^ *)(holdfast [a-z][^\n;,(]*[^\n;,( .])`)

// suggested are the commands that a text suggests whose first words are these; there must be one.
func (s *shell) suggested(text, words string) string {
	s.Helper()
	for _, line := range strings.Split(text, "\n") {
		for _, found := range suggestion.FindAllStringSubmatch(strings.ReplaceAll(line, "; ", "\n: "), -1) {
			if strings.HasPrefix(found[1], "holdfast "+words) {
				return found[1]
			}
		}
	}
	s.Fatalf("it suggests no holdfast %s:\n%s", words, text)
	return ""
}

// Whoever pastes what was printed, into a shell that knows nothing, meets the same job in the same place.
func TestOnLocalStackEveryCommandCanBePasted(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	stack := d.backend.Stack + "-paste"
	unsaid(t)
	s := newShell(d)
	place := shellWords([]string{"--backend", "aws", "--endpoint", d.backend.Endpoint, "--stack", stack, "--policy", d.policy, "--tenant", "legal team"})
	defer s.types(exitCompleted, "holdfast admin delete --yes "+place)

	out := s.types(exitFailed, "holdfast jobs "+place)
	s.types(exitCompleted, s.suggested(out, "admin create"))
	out = s.types(exitCompleted, "holdfast jobs "+place)
	d.doc("contract.txt", contract(0, 2000))
	d.doc("other.txt", strings.ReplaceAll(contract(0, 2000), "Reseller", "Dealer"))
	run := strings.Replace(s.suggested(out, "run FILE"), "FILE", "other.txt --profile compact --fail refused=20% --seed 3 --out report", 1)

	out = s.types(exitCompleted, "holdfast submit contract.txt --profile compact --fresh "+place)
	id, _, _ := strings.Cut(out, "\n")
	d.says(s.types(exitCompleted, "holdfast status "+id+" "+place), "not split yet")
	worker := s.suggested(out, "worker")
	s.suggested(s.types(exitCompleted, "holdfast status "+id+" "+place), "worker")
	working := s.line("exec " + worker + " --pace 1s")
	d.must(working.Start())
	out = ""
	for looks := 0; !strings.Contains(out, "start it with"); looks++ { // nobody is told when a job is split
		if out = s.types(exitCompleted, "holdfast status "+id+" "+place); looks > 500 {
			t.Fatalf("it is never split: %s", out)
		}
	}
	out = s.types(exitCompleted, s.suggested(out, "resume"))
	s.suggested(out, "watch")
	out = s.types(exitCompleted, "holdfast pause "+id+" "+place)
	out = s.types(exitCompleted, s.suggested(out, "resume"))
	d.says(s.types(exitCompleted, s.suggested(out, "watch")), "cells answered")
	d.must(working.Process.Signal(syscall.SIGTERM))
	d.must(working.Wait())

	out = s.types(exitPartial, run)
	d.says(s.types(exitCompleted, s.suggested(out, "why")), "refused")
	again := s.suggested(out, "redrive")
	out = s.types(exitUsage, "holdfast status no-such-job "+place)
	d.says(s.types(exitCompleted, s.suggested(out, "jobs")), "partial", "completed")
	body, err := os.ReadFile(filepath.Join(d.dir, "report", "report.md"))
	d.must(err)
	if !strings.Contains(string(body), again) {
		t.Errorf("the report does not suggest %s:\n%s", again, body)
	}
	out = s.types(exitCompleted, again)
	s.types(exitCompleted, s.suggested(out, "worker")+" --idle")
	d.says(s.types(exitCompleted, "holdfast jobs "+place), "completed")
	if exists(filepath.Join(d.dir, defaultStore, "holdfast.db")) { // logs of workers are there
		t.Error("one of them made a store in a folder")
	}
}
