//go:build unix && !linux

package command

import (
	"os/exec"
	"syscall"
)

// ownGroup: the command and all that it starts are one group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await waits until the command has exited, and kills what it left behind.
func await(cmd *exec.Cmd) {
	_ = cmd.Wait() // how it exited is in its state
	killGroup(cmd.Process.Pid)
}
