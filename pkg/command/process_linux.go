package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup: the command and all that it starts are one group, and the kernel kills the command when this worker dies,
// however it dies.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitFor waits until the command has exited, and kills what it left behind before its number may be given to others.
func waitFor(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	killGroup(cmd.Process.Pid)
	_ = cmd.Wait() // how it exited is in its state
}

// sweeps bounds how often killMarked looks for processes that were started while it looked.
const sweeps = 20

// killMarked kills every process with the mark in its environment, until there is none.
func killMarked(mark string) {
	for range sweeps {
		marked := withMark(mark)
		if len(marked) == 0 {
			return
		}
		for _, pid := range marked {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// withMark are the processes with the mark in their environment; those of other users cannot be read and are not ours.
func withMark(mark string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && bytes.Contains(environ, []byte(mark+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}
