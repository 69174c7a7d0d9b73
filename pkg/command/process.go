package command

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// afterExit is how long what a command left behind may still hold its output open: only what left its process group and
// dropped its environment.
const afterExit = time.Second

// run starts a command in a process group of its own and returns when nothing of the group runs any more, nor (on Linux)
// anything that has the try's mark in its environment. When ctx is done both are killed.
//
// It runs on a thread of its own: where the kernel kills a child whose parent died, parent means the thread.
func run(ctx context.Context, cmd *exec.Cmd, input string, watch watch) (result, error) {
	type ended struct {
		result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r, err := attend(ctx, cmd, input, watch)
		done <- ended{r, err}
	}()
	e := <-done
	return e.result, e.err
}

func attend(ctx context.Context, cmd *exec.Cmd, input string, watch watch) (result, error) {
	r := result{out: &bounded{head: MaxOutput}, err: &bounded{tail: maxTail}}
	pipes, err := connect(cmd)
	if err != nil {
		return r, err
	}
	cmd.SysProcAttr = ownGroup()
	err = cmd.Start()
	pipes.started()
	if err != nil {
		pipes.close()
		return r, err
	}
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.WriteString(pipes.in, input); _ = pipes.in.Close() }) // a command need not read it
	copies.Go(func() { _, _ = io.Copy(r.out, pipes.out) })
	copies.Go(func() { _, _ = io.Copy(r.err, pipes.err) })

	group := cmd.Process.Pid
	defer watch.started(group)()
	over := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		select {
		case <-ctx.Done():
			killGroup(group)
			killMarked(watch.try)
		case <-over:
		}
	})
	waitFor(cmd)
	close(over)
	killer.Wait()
	killMarked(watch.try)
	pipes.deadline(time.Now().Add(afterExit))
	copies.Wait()
	pipes.close()
	r.state = cmd.ProcessState
	return r, nil
}

func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// pipes are our ends of a command's standard files.
type pipes struct {
	in, out, err *os.File
	theirs       []*os.File
}

func connect(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	read := func(theirs *io.Writer) (ours *os.File, err error) {
		r, w, err := os.Pipe()
		if err == nil {
			*theirs = w
			p.theirs = append(p.theirs, w)
		}
		return r, err
	}
	var err error
	if p.out, err = read(&cmd.Stdout); err != nil {
		return nil, err
	}
	if p.err, err = read(&cmd.Stderr); err != nil {
		p.close()
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		p.close()
		return nil, err
	}
	cmd.Stdin, p.in, p.theirs = r, w, append(p.theirs, r)
	return p, nil
}

// started closes the command's ends: it has its own.
func (p *pipes) started() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
}

// deadline ends what still waits for a process that left the group.
func (p *pipes) deadline(t time.Time) {
	_ = p.in.SetWriteDeadline(t)
	_ = p.out.SetReadDeadline(t)
	_ = p.err.SetReadDeadline(t)
}

func (p *pipes) close() {
	p.started()
	for _, f := range []*os.File{p.in, p.out, p.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}
