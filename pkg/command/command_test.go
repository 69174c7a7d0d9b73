package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
)

// asGuard is the variable that makes this test binary a guard; as a worker it starts a command and stays.
const (
	asGuard  = "HOLDFAST_TEST_GUARD"
	asWorker = "HOLDFAST_TEST_WORKER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asGuard) != "":
		Watch(os.Stdin)
	case os.Getenv(asWorker) != "":
		workAndDie()
	default:
		goleak.VerifyTestMain(m)
	}
}

func sh(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "sh"}, args...)
}

func item(text string, command ...string) pipeline.WorkItem {
	return pipeline.WorkItem{Text: text, Command: command, Number: 7, Job: "j", Task: "work#00007", Attempt: 2, Generation: 5, Try: 3}
}

func TestRun(t *testing.T) {
	answers := []struct {
		name, text string
		command    []string
		want       string
	}{
		{"the text is one argument, whatever is in it", `a "b" 'c' $HOME; rm -rf *` + "`x` \\", sh(`printf %s "$1"`, "{}"), `a "b" 'c' $HOME; rm -rf *` + "`x` \\"},
		{"the text is a part of an argument", "x", sh(`printf %s "$1"`, "--file={}.{}"), "--file=x.x"},
		{"line ends inside of it stay", "a\nb", sh(`printf %s "$1"`, "{}"), "a\nb"},
		{"a text that looks like the placeholder is not replaced again", "{}{}", sh(`printf %s "$1"`, "[{}]"), "[{}{}]"},
		{"the text is the standard input too", "one two", []string{"wc", "-w"}, "2\n"},
		{"a command that prints nothing has answered", "x", []string{"true"}, ""},
		{"a command need not read its input", strings.Repeat("x", 1<<20), []string{"echo", "hi"}, "hi\n"},
		{"it is told which try it is", "x", sh(`echo $HOLDFAST_JOB $HOLDFAST_TASK $HOLDFAST_ATTEMPT $HOLDFAST_GENERATION $HOLDFAST_TRY $HOLDFAST_ITEM`), "j work#00007 2 5 3 7\n"},
		{"what it says on standard error is no answer", "x", sh(`echo warning >&2; echo ok`), "ok\n"},
		{"as much as is kept is an answer", "x", sh(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' a", MaxOutput)), strings.Repeat("a", MaxOutput)},
	}
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			out, err := Run(t.Context(), item(c.text, c.command...))
			if err != nil || out.Text != c.want || out.Free {
				t.Errorf("got %q, free %v, %v, want %q", pipeline.Cut(out.Text, 80), out.Free, err, pipeline.Cut(c.want, 80))
			}
		})
	}
}

func TestFailures(t *testing.T) {
	unreadable := filepath.Join(t.TempDir(), "unreadable")
	if err := os.WriteFile(unreadable, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	failures := []struct {
		name, text string
		command    []string
		kind       pipeline.Kind
		says       string
		free       bool
	}{
		{"exit 65 is this item's fault", "x", sh("exit 65"), pipeline.Invalid, "65", false},
		{"exit 69 is everybody's, and nothing was done", "x", sh("exit 69"), pipeline.Throttled, "69", true},
		{"exit 75 may pass", "x", sh("exit 75"), pipeline.Unavailable, "75", false},
		{"any other exit is a failed attempt, with the last it said, {} for the text", "a b", sh("echo first >&2; echo no 'a b' here >&2; exit 3"), pipeline.Broken, "the command exited with 3: no {} here", false},
		{"a signal is a failed attempt", "x", sh("kill -9 $$"), pipeline.Broken, "the command died of signal 9 (killed)", false},
		{"too large an output", "x", sh(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' a", MaxOutput+1)), pipeline.Invalid, "more than 256 KB", false},
		{"an output that is no text", "x", sh(`printf '\377\376'`), pipeline.Invalid, "not UTF-8", false},
		{"an endless output of a command that fails", "x", sh("head -c 9000000 /dev/zero; exit 3"), pipeline.Broken, "exited with 3", false},
		{"a program that is not there is the configuration's fault", "x", []string{"no-such-program-anywhere"}, pipeline.Rejected, "no-such-program-anywhere", true},
		{"so is one that may not be run", "x", []string{unreadable}, pipeline.Rejected, "permission denied", true},
		{"so is a definition without a command", "x", nil, pipeline.Rejected, "no command", true},
		{"a text too long for an argument", strings.Repeat("x", 300<<10), []string{"echo", "{}"}, pipeline.Invalid, "standard input", true},
		{"a text with NUL, which no argument can hold", "a\x00b", []string{"echo", "{}"}, pipeline.Invalid, "standard input", true},
	}
	for _, c := range failures {
		t.Run(c.name, func(t *testing.T) {
			out, err := Run(t.Context(), item(c.text, c.command...))
			f := pipeline.FunctionFailure(err)
			if err == nil || f.Kind != c.kind || !strings.Contains(f.Cause, c.says) || out.Free != c.free {
				t.Errorf("got %+v, free %v, want %s with %q, free %v", f.Failure, out.Free, c.kind, c.says, c.free)
			}
		})
	}
	t.Run("a folder that is not there is the configuration's fault", func(t *testing.T) {
		i := item("x", "true")
		i.Dir = "/no/such/folder"
		if _, err := Run(t.Context(), i); pipeline.FunctionFailure(err).Kind != pipeline.Rejected {
			t.Errorf("got %v, want rejected", err)
		}
	})
	t.Run("the last lines of standard error are the detail, bounded", func(t *testing.T) {
		_, err := Run(t.Context(), item("x", sh(`for i in 1 2 3 4 5; do echo line $i >&2; done; head -c 100000 /dev/zero | tr '\0' z >&2; echo >&2; echo end >&2; exit 1`)...))
		f := pipeline.FunctionFailure(err).Failure
		if len(f.Detail) > pipeline.MaxDetail || !strings.HasSuffix(f.Cause, ": end") {
			t.Errorf("got %d bytes of detail, cause %q", len(f.Detail), f.Cause)
		}
	})
}

func TestWhereItRuns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\npwd\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := item("x", "./run.sh")
	i.Dir = dir
	out, err := Run(t.Context(), i)
	if err != nil || strings.TrimSpace(out.Text) != dir {
		t.Errorf("got %q, %v, want %s", out.Text, err, dir)
	}
}

// needs fails on Linux where there is no such program, or no /proc to know processes by; elsewhere it skips.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			lacks(t, err)
		}
	}
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		lacks(t, err)
	}
}

// lacks ends a test that needs what is not here. On Linux all of it must be there: what a test holds is not given up
// because a machine lacks a package.
func lacks(t *testing.T, what any) {
	t.Helper()
	if runtime.GOOS == "linux" {
		t.Fatalf("%v: install it (coreutils, util-linux), or mount /proc", what)
	}
	t.Skip(what)
}

var errOver = errors.New("over")

func TestKill(t *testing.T) {
	scripts := map[string]string{
		"that waits":                        `echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; sleep 1000`,
		"that ignores SIGTERM":              `trap "" TERM INT HUP; echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; while :; do sleep 1000; done`,
		"whose children wait":               `sleep 1000 & echo $! > "$1.tmp"; mv "$1.tmp" "$1"; wait`,
		"whose children's do":               `(sleep 1000 & echo $! > "$1.tmp"; mv "$1.tmp" "$1"; wait) & wait`,
		"whose child drops the environment": `env -i sleep 1000 & echo $! > "$1.tmp"; mv "$1.tmp" "$1"; wait`,
		"that exits before them":            `sleep 1000 & echo $! > "$1.tmp"; mv "$1.tmp" "$1"; exec sleep 1000`,
	}
	for name, script := range scripts {
		t.Run("the time of a command is over: nothing of it runs on, of one "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			file := filepath.Join(t.TempDir(), "pid")
			var group pipeline.Group
			var err error
			group.Go(func() { _, err = Run(ctx, item(file, sh(script, "{}")...)) })
			pid := await(t, file)
			cancel(errOver)
			group.Wait()
			if !errors.Is(err, errOver) {
				t.Errorf("got %v, want the cause of the context", err)
			}
			gone(t, pid)
		})
	}
	t.Run("what a command leaves behind when it ends is killed, and does not keep its answer", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		out, err := Run(t.Context(), item(file, sh(`env -i sleep 1000 & echo $! > "$1"; echo done`, "{}")...))
		if err != nil || out.Text != "done\n" {
			t.Errorf("got %q, %v", out.Text, err)
		}
		gone(t, await(t, file))
	})
	leavers := map[string]string{
		"by timeout":               `timeout 1000 sh -c 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; sleep 1000' sh "$1"`,
		"by the shell's job table": `set -m; sh -c 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; sleep 1000' sh "$1" & wait`,
		"by a session of its own":  `setsid sh -c 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; sleep 1000' sh "$1" & wait`,
	}
	for name, script := range leavers {
		t.Run("the time of a command is over: what left its group is killed too, "+name, func(t *testing.T) {
			needs(t, "setsid", "timeout")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			file := filepath.Join(t.TempDir(), "pid")
			var group pipeline.Group
			group.Go(func() { _, _ = Run(ctx, item(file, sh(script, "{}")...)) })
			pid := await(t, file)
			cancel(errOver)
			group.Wait()
			gone(t, pid)
		})
	}
	t.Run("what left the group of a command that ended is killed, and nothing of another try", func(t *testing.T) {
		needs(t, "setsid")
		file := filepath.Join(t.TempDir(), "pid")
		const leaves = `setsid sh -c 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; exec sleep 1000' sh "$1" & while [ ! -e "$1" ]; do sleep 0.01; done; `
		ctx, cancel := context.WithCancel(t.Context())
		var group pipeline.Group
		group.Go(func() { _, _ = Run(ctx, item(file+"-other", sh(leaves+"wait", "{}")...)) })
		other := await(t, file+"-other")
		out, err := Run(t.Context(), item(file, sh(leaves+"echo done", "{}")...))
		if err != nil || out.Text != "done\n" {
			t.Errorf("got %q, %v", out.Text, err)
		}
		gone(t, await(t, file))
		if syscall.Kill(other, 0) != nil {
			t.Error("another try's process was killed")
		}
		cancel()
		group.Wait()
		gone(t, other)
	})
	t.Run("what leaves the group and drops its environment does not keep the answer", func(t *testing.T) {
		needs(t, "setsid")
		file := filepath.Join(t.TempDir(), "pid")
		out, err := Run(t.Context(), item(file, sh(`setsid env -i sh -c 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; exec sleep 1000' sh "$1" & while [ ! -e "$1" ]; do sleep 0.01; done; echo done`, "{}")...))
		if err != nil || out.Text != "done\n" {
			t.Errorf("got %q, %v", out.Text, err)
		}
		kill(await(t, file))
	})
}

func TestNothingIsLeft(t *testing.T) {
	before := files(t)
	for n := range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		if n%2 == 0 {
			cancel()
		}
		_, _ = Run(ctx, item("x", sh("sleep 0.01; echo x; exit $1", fmt.Sprint(n%3))...))
		_, _ = Run(ctx, item("x", "no-such-program-anywhere"))
		cancel()
	}
	if after := files(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
	if children := childrenOf(t, os.Getpid()); len(children) > 0 {
		t.Errorf("processes are left: %v", children)
	}
}

// within is how long a test waits for what should happen at once.
const within = 20 * time.Second
