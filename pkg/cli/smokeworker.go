package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"holdfast/pkg/awscost"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/smoke"
)

// bill is what requests came to.
type bill struct {
	Requests int     `json:"requests"`
	Writes   float64 `json:"write_units"`
	Reads    float64 `json:"read_units"`
	Dollars  float64 `json:"dollars"`
}

func billOf(meter *awscost.Meter) bill {
	sum := meter.Total()
	return bill{sum.Requests, sum.Writes, sum.Reads, meter.Price()}
}

func (b *bill) add(other bill) {
	b.Requests += other.Requests
	b.Writes += other.Writes
	b.Reads += other.Reads
	b.Dollars += other.Dollars
}

// smokeWorkerCmd is a worker process of a canary.
type smokeWorkerCmd struct {
	Job      string        `required:"" help:"Its job."`
	Own      bool          `help:"Under the canary's own model name."`
	Pace     time.Duration `help:"Mean time of an answer."`
	InFlight int           `name:"in-flight" required:"" help:"Calls at once."`
	Claims   int           `help:"Chunks at once; 0 = all."`
	Ledger   string        `required:"" help:"File to which every question is written."`
}

// tellEvery is how often such a process says what it spent: what it did after that, a kill leaves untold.
const tellEvery = 200 * time.Millisecond

// Run works on the job until none of its chunks is open, or standard input ends.
func (c *smokeWorkerCmd) Run(a *app) error {
	meter := &awscost.Meter{}
	a.calls = c.InFlight
	b, err := a.metered(meter)
	if err != nil {
		return err
	}
	defer b.Close()
	drain, stop := context.WithCancelCause(a.drain)
	defer stop(nil)
	go drainAtEOF(os.Stdin, func() { stop(pipeline.ErrDraining) }) // ends with the process: a read of standard input cannot be interrupted
	orders := smoke.Orders{
		Job: pipeline.JobID(c.Job), Worker: os.Getenv(workerName), Own: c.Own, Pace: c.Pace, InFlight: c.InFlight, Claims: c.Claims,
	}
	price, err := dearestPrice()
	if err != nil {
		return err
	}
	model := smokeModel(orders.Worker, c.Pace, c.Ledger, price, a.clock)
	tell := json.NewEncoder(a.out)
	told, done := context.WithCancel(context.Background())
	var group pipeline.Group
	group.Go(func() {
		for a.clock.Sleep(told, tellEvery) == nil {
			_ = tell.Encode(billOf(meter)) // the canary has gone, and then nobody asks
		}
	})
	err = smoke.Work(a.ctx, drain, smoke.Setup{Backend: b, Policy: a.policy, Clock: a.clock}, model, orders)
	done()
	group.Wait()
	_ = tell.Encode(billOf(meter))
	return err
}

// hatchery starts the worker processes of a canary.
type hatchery struct {
	a       *app
	ledgers string

	made int
	all  []*hatched
}

// hatched is one of them.
type hatched struct {
	cmd    *exec.Cmd
	in     io.Closer // closing it drains the worker
	ledger string
	stderr bytes.Buffer
	exited chan struct{}

	mu    sync.Mutex
	spent bill // as it said last
	exit  error
}

func (h *hatchery) start(_ context.Context, o smoke.Orders) (smoke.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	h.made++
	p := &hatched{ledger: filepath.Join(h.ledgers, o.Worker+".log"), exited: make(chan struct{})}
	args := append(h.a.globalArgs(), "admin", "smoke-worker", "--job", string(o.Job), "--pace", o.Pace.String(),
		"--in-flight", fmt.Sprint(o.InFlight), "--claims", fmt.Sprint(o.Claims), "--ledger", p.ledger)
	if o.Own {
		args = append(args, "--own")
	}
	p.cmd = exec.Command(self, args...)
	p.cmd.Env = append(os.Environ(), workerName+"="+o.Worker)
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the canary, which drains its workers
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a worker of the canary: %w", err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a worker of the canary: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker of the canary: %w", err)
	}
	h.all = append(h.all, p)
	go p.attend(out) // until the process has exited, which whoever started it waits for
	return p, nil
}

// spent is what all of them said.
func (h *hatchery) spent() (sum bill) {
	for _, p := range h.all {
		p.mu.Lock()
		sum.add(p.spent)
		p.mu.Unlock()
	}
	return sum
}

// attend reads what the process says until it exits.
func (p *hatched) attend(out io.Reader) {
	defer close(p.exited)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var said bill
		if json.Unmarshal(lines.Bytes(), &said) != nil {
			continue // a line that a kill cut off
		}
		p.mu.Lock()
		p.spent = said
		p.mu.Unlock()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = err
}

// Kill sends SIGKILL.
func (p *hatched) Kill() error {
	if err := p.cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Stop drains it.
func (p *hatched) Stop() { _ = p.in.Close() }

// Exited is closed once it has exited.
func (p *hatched) Exited() <-chan struct{} { return p.exited }

// Killed says that it has exited by SIGKILL.
func (p *hatched) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return killed(p.exit)
}

func killed(exit error) bool {
	var failed *exec.ExitError
	if !errors.As(exit, &failed) {
		return false
	}
	status, is := failed.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Failed is what it said when it ended otherwise than well, or by SIGKILL.
func (p *hatched) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil || killed(p.exit) {
		return nil
	}
	return fmt.Errorf("a worker process of the canary ended (%w): %s", p.exit, bytes.TrimSpace(p.stderr.Bytes()))
}

// Asked is what it began to ask.
func (p *hatched) Asked() ([]pipeline.ReplyKey, error) {
	entries, err := offline.ReadLedger(p.ledger)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has asked nothing yet
	}
	var keys []pipeline.ReplyKey
	for _, e := range entries {
		if e.Event == offline.Begin {
			keys = append(keys, e.Key)
		}
	}
	return keys, err
}
