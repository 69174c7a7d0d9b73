package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// workAndDie is a worker that runs a command whose child waits, until it is killed.
func workAndDie() {
	file := os.Getenv(asWorker)
	run := Run
	if os.Getenv("HOLDFAST_TEST_UNGUARDED") == "" {
		os.Setenv(asGuard, "1")
		guard, err := StartGuard(os.Args[0])
		if err != nil {
			panic(err)
		}
		os.Unsetenv(asGuard)
		run = guard.Run
	}
	_, _ = run(context.Background(), item(file, sh(`sleep 1000 & first=$!
if command -v setsid > /dev/null; then setsid sleep 1000 & else sleep 1000 & fi
echo $$ $first $! > "$1.tmp"; mv "$1.tmp" "$1"; wait`, "{}")...))
}

func TestGuard(t *testing.T) {
	for name, unguarded := range map[string]bool{"its command and what that started are gone": false, "its command is gone without a guard": true} {
		t.Run("a worker is killed with kill -9: "+name, func(t *testing.T) {
			if runtime.GOOS == "linux" {
				needs(t, "setsid") // without it, the worker's script below would start one child twice in one group
			}
			file := filepath.Join(t.TempDir(), "pids")
			worker := exec.Command(os.Args[0])
			worker.Env = append(os.Environ(), asWorker+"="+file)
			if unguarded {
				worker.Env = append(worker.Env, "HOLDFAST_TEST_UNGUARDED=1")
			}
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			awaitFile(t, file)
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := worker.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = worker.Wait()
			for n, pid := range strings.Fields(string(body)) {
				if unguarded && n > 0 {
					kill(number(t, pid)) // only a guard sees to it
					continue
				}
				gone(t, number(t, pid))
			}
		})
	}
	t.Run("a guard that is closed kills nobody and leaves nothing", func(t *testing.T) {
		t.Setenv(asGuard, "1")
		guard, err := StartGuard(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		out, err := guard.Run(t.Context(), item("x", "echo", "{}"))
		if err != nil || out.Text != "x\n" {
			t.Errorf("got %q, %v", out.Text, err)
		}
		guard.Close()
		if children := childrenOf(t, os.Getpid()); len(children) > 0 {
			t.Errorf("processes are left: %v", children)
		}
	})
	t.Run("a group that runs is killed when the worker has gone, one that has ended is not meant", func(t *testing.T) {
		for _, ended := range []bool{false, true} {
			cmd := exec.Command("sleep", "1000")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			told := fmt.Sprintf("+%d\n", cmd.Process.Pid)
			if ended {
				told += fmt.Sprintf("-%d\n", cmd.Process.Pid)
			}
			Watch(strings.NewReader(told))
			_ = cmd.Process.Signal(syscall.SIGTERM) // the first of the two signals is what it dies of
			_ = cmd.Wait()
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); (status.Signal() == syscall.SIGTERM) != ended {
				t.Errorf("ended %v: it died of %v", ended, status.Signal())
			}
		}
	})
	t.Run("lines that a kill cut off, and numbers that are no command's, mean nothing", func(t *testing.T) {
		Watch(strings.NewReader("+0\n+1\n-1\n+-5\nx\n\n+"))
	})
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// await is the process number in a file that a command will write.
func await(t *testing.T, file string) int {
	t.Helper()
	awaitFile(t, file)
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return number(t, strings.TrimSpace(string(body)))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	until(t, file+" is there", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// gone fails unless a process ends: a zombie that its parent has not waited for has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	until(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return syscall.Kill(pid, 0) != nil
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(after, "Z")
	})
}

// until looks again and again: other processes send no signal when they change.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("after %v it does not hold that %s", within, what)
		}
		_ = pipeline.NewRealClock().Sleep(t.Context(), 5*time.Millisecond)
	}
}

func files(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		lacks(t, "no /proc here")
	}
	return len(open)
}

// childrenOf are the processes whose parent is pid, zombies too.
func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(all) == 0 {
		lacks(t, "no /proc here")
	}
	var children []string
	for _, file := range all {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(after); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			children = append(children, string(stat))
		}
	}
	return children
}
