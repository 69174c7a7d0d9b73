package sqlitestore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
)

// The test binary is also the other process: with childEnv set it does one of children and exits.
const (
	childEnv = "SQLITESTORE_CHILD"
	dirEnv   = "SQLITESTORE_DIR"
	nameEnv  = "SQLITESTORE_NAME"
)

var children = map[string]func(s *Store, name string) error{
	"open":   func(*Store, string) error { return nil },
	"claim":  claimEverything,
	"write":  writeReplies,
	"forget": func(*Store, string) error { os.Exit(0); return nil },
}

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv(childEnv)]; ok {
		if err := beChild(child); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func beChild(child func(*Store, string) error) error {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil { // all begin at once
		return err
	}
	s, err := Open(context.Background(), os.Getenv(dirEnv), Config{})
	if err != nil {
		return err
	}
	if err := child(s, os.Getenv(nameEnv)); err != nil {
		return err
	}
	return s.CloseFile()
}

// process is another process on the same store.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	begin func()
}

func startProcess(t *testing.T, child, dir, name string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+child, dirEnv+"="+dir, nameEnv+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{cmd: cmd, lines: bufio.NewScanner(out), begin: func() { fmt.Fprintln(in) }}
}

// rest is all lines until the process ends, which must end well.
func (p *process) rest(t *testing.T) (lines []string) {
	t.Helper()
	for p.lines.Scan() {
		lines = append(lines, p.lines.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
	return lines
}

const racedTasks = 300

// claimEverything tries to claim every task and prints those it got.
func claimEverything(s *Store, name string) error {
	for n := range racedTasks {
		ref := pipeline.Ref{Job: "race", ID: pipeline.WorkTask(n)}
		_, err := s.Claim(context.Background(), pipeline.ClaimWrite{
			Ref: ref, MaxAttempts: 3, Worker: name, ClaimID: name + strconv.Itoa(n), Now: 1000, Expires: 2000, Due: 3000,
		})
		if _, refused := pipeline.Old(err); refused {
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println(ref.ID)
	}
	return nil
}

const writtenReplies = 400

// writeReplies stores replies from eight goroutines and prints the key of each once it was acknowledged.
func writeReplies(s *Store, name string) error {
	errs := make(chan error, 8)
	for g := range cap(errs) {
		go func() {
			for i := range writtenReplies / cap(errs) {
				r := pipeline.Reply{Key: pipeline.ReplyKey(fmt.Sprintf("%s-%d-%d", name, g, i)), Text: strings.Repeat("x", 500)}
				if _, err := s.PutReply(context.Background(), r); err != nil {
					errs <- err
					return
				}
				fmt.Println(r.Key)
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
