package command

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"holdfast/pkg/pipeline"
)

// Guard is a process that outlives its worker for a moment: when the worker is gone, however it went, the guard kills
// the process groups of the commands that still run, and (on Linux) every process that has its mark in the environment.
// What a command has started would otherwise run on.
type Guard struct {
	cmd  *exec.Cmd
	mark string
	mu   sync.Mutex
	in   io.WriteCloser
}

// markName is the variable by which a guard knows the processes that its worker's commands started: a group is known
// only a moment after it runs.
const markName = "HOLDFAST_GUARD"

// StartGuard starts the program, which must call [Watch] on its standard input.
func StartGuard(program string, args ...string) (*Guard, error) {
	g := &Guard{cmd: exec.Command(program, args...), mark: markName + "=" + rand.Text()}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what is sent to the worker's group is not for it
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the guard of commands: %w", err)
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of commands: %w", err)
	}
	_, _ = fmt.Fprintln(g.in, g.mark)
	return g, nil
}

// Run is [Run], with what it starts watched by the guard.
func (g *Guard) Run(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
	return work(ctx, item, watch{mark: g.mark, started: g.watch})
}

// watch tells the guard of a group, and of its end.
func (g *Guard) watch(group int) (over func()) {
	g.tell("+%d\n", group)
	return func() { g.tell("-%d\n", group) }
}

func (g *Guard) tell(format string, group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = fmt.Fprintf(g.in, format, group) // a guard that was killed: the kernel still kills the command itself
}

// Close ends the guard of a worker that runs nothing any more.
func (g *Guard) Close() {
	_ = g.in.Close()
	_ = g.cmd.Wait() // it has nothing to say
}

// Watch is the guard's work: it reads which groups run, until the worker has gone, and kills those.
func Watch(in io.Reader) {
	running := map[int]bool{}
	mark := ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), markName+"=") {
			mark = lines.Text()
			continue
		}
		var sign rune
		var group int
		if n, err := fmt.Sscanf(lines.Text(), "%c%d", &sign, &group); n != 2 || err != nil || group < 2 {
			continue // cut off by a kill
		}
		if sign == '+' {
			running[group] = true
		} else {
			delete(running, group)
		}
	}
	for group := range running {
		killGroup(group)
	}
	if len(mark) > len(markName)+1 {
		killMarked(mark)
	}
}
