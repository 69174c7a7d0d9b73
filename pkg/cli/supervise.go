package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
	"holdfast/pkg/work"
)

// barren bounds how many workers may die one after the other without having claimed anything.
const barren = 10

// sayAfter is how long workers may drain before a person is told what is waited for.
const sayAfter = 2 * time.Second

// supervisor keeps worker processes alive: a dead one is replaced, and its claims are expired at once.
type supervisor struct {
	a      *app
	system *wiring.System
	args   []string // of the worker command
	events func(work.Event)
	log    string // folder of the workers' logs

	mu      sync.Mutex
	running map[string]*process
	made    int
	deaths  int // that nobody asked for
	expired int // claims of dead workers
	fruit   bool
	idle    int // deaths without a claim in between
	closing bool
	failed  error
	group   pipeline.Group
}

type process struct {
	name string
	cmd  *exec.Cmd
	in   io.Closer // closing it drains the worker
	held int       // claims, by its events
}

func newSupervisor(a *app, s *wiring.System, args []string, events func(work.Event)) *supervisor {
	return &supervisor{a: a, system: s, args: args, events: events, log: filepath.Join(a.Store, "logs"), running: map[string]*process{}}
}

// start starts n workers.
func (s *supervisor) start(n int) error {
	if err := os.MkdirAll(s.log, 0o755); err != nil {
		return fmt.Errorf("make the folder of the workers' logs: %w", err)
	}
	for range n {
		if err := s.spawn(); err != nil {
			return err
		}
	}
	return nil
}

func (s *supervisor) spawn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.made++
	name := fmt.Sprintf("worker-%d-%d", os.Getpid(), s.made)
	log, err := os.Create(filepath.Join(s.log, name+".log"))
	if err != nil {
		return fmt.Errorf("make a worker's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(self, s.args...)
	cmd.Env = append(os.Environ(), workerName+"="+name)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the supervisor, which drains its workers
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	p := &process{name: name, cmd: cmd, in: in}
	s.running[name] = p
	s.group.Go(func() { s.attend(p, out) })
	return nil
}

// attend reads a worker's events until it exits, then sees to its claims and its successor.
func (s *supervisor) attend(p *process, out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e work.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // a line that a kill cut off
		}
		s.note(p, e)
		s.events(e)
	}
	exit := p.cmd.Wait() // from here on none of its writes can come any more
	s.mu.Lock()
	delete(s.running, p.name)
	closing := s.closing
	s.mu.Unlock()
	n, err := s.system.Reaper.Exited(context.WithoutCancel(s.a.ctx), p.name)
	switch p.cmd.ProcessState.ExitCode() { // another worker would find the same
	case exitFull:
		s.fail(codeError{exitFailed, s.a.fullText()})
		return
	case exitGone:
		s.fail(codeError{exitFailed, s.a.goneText()})
		return
	}
	s.mu.Lock()
	s.expired += n
	s.mu.Unlock()
	if err != nil {
		s.fail(fmt.Errorf("expire the claims of %s, which exited: %w", p.name, err))
		return
	}
	if closing && exit == nil {
		return
	}
	s.replace(p, exit)
}

// note keeps count of a worker's claims.
func (s *supervisor) note(p *process, e work.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.What {
	case "claim":
		s.fruit = true
		p.held++
	case "end":
		p.held--
	}
}

func (s *supervisor) replace(p *process, exit error) {
	s.mu.Lock()
	s.deaths++
	if s.fruit {
		s.idle = 0
	}
	s.fruit = false
	s.idle++
	idle, closing := s.idle, s.closing
	s.mu.Unlock()
	s.events(work.Event{What: "death", Worker: p.name})
	switch {
	case closing:
	case idle >= barren:
		s.fail(fmt.Errorf("%d workers died one after the other without claiming anything (%v); see %s", idle, exit, filepath.Join(s.log, p.name+".log")))
	default:
		if err := s.a.clock.Sleep(s.a.drain, time.Duration(idle-1)*100*time.Millisecond); err != nil {
			return
		}
		if err := s.spawn(); err != nil {
			s.fail(err)
		}
	}
}

func (s *supervisor) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil { // the first one is the cause
		s.failed = err
	}
}

func (s *supervisor) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// kill sends SIGKILL to the worker with the most claims and returns its name.
func (s *supervisor) kill() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var busiest *process
	for _, p := range s.running {
		if busiest == nil || p.held > busiest.held {
			busiest = p
		}
	}
	if busiest == nil || busiest.cmd.Process.Kill() != nil {
		return ""
	}
	return busiest.name
}

// stop drains all workers and waits for them; those that take longer than the grace are killed.
func (s *supervisor) stop(grace time.Duration) {
	s.mu.Lock()
	s.closing = true
	for _, p := range s.running {
		_ = p.in.Close() // it drains at the end of its input
	}
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		s.group.Wait()
		close(finished)
	}()
	timer, patience := time.NewTimer(grace), time.NewTimer(sayAfter)
	defer timer.Stop()
	defer patience.Stop()
	for waiting := true; waiting; {
		select {
		case <-finished:
			return
		case <-patience.C:
			fmt.Fprintf(s.a.err, "What is in flight finishes first, within %v; Ctrl-C again drops it.\n", grace)
			continue
		case <-s.a.ctx.Done():
		case <-timer.C:
		}
		waiting = false
	}
	s.mu.Lock()
	for _, p := range s.running {
		_ = p.cmd.Process.Kill()
	}
	s.mu.Unlock()
	<-finished
}
