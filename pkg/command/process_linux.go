package command

import (
	"os/exec"
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
