package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
	"holdfast/pkg/wiring/embedded"
)

// sweepEvery is how often a worker of the embedded backend reaps for itself.
const sweepEvery = time.Second

// workerName is the variable in which a supervisor tells a worker its name.
const workerName = "HOLDFAST_WORKER"

type workerCmd struct {
	modelFlags
	Concurrency int           `help:"Calls in flight at once." default:"32"`
	Claims      int           `help:"Chunks claimed at once; 0 = enough to keep the calls busy." default:"0"`
	Grace       time.Duration `help:"How long calls in flight may finish after Ctrl-C or SIGTERM; 0 = as long as the longest may take. A second one drops them." default:"0s"`
	Supervised  bool          `hidden:"" help:"Print events as JSON lines, and drain when standard input ends."`
	Idle        bool          `help:"Stop when no job is open any more."`
	AllowExec   bool          `name:"allow-exec" help:"Run the commands of jobs that were submitted with --exec. Whoever may submit to this store chooses them."`
}

// gcPercent is how much a worker's heap may grow between two collections, unless GOGC says otherwise: several workers
// share a machine, and each keeps little of what it allocates.
const gcPercent = 50

// Run works until it is stopped.
func (c *workerCmd) Run(a *app) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	name := os.Getenv(workerName)
	if name == "" {
		name = newWorkerName()
	}
	model, err := c.model(name, a.clock, suicide)
	if err != nil {
		return err
	}
	exec, unguard, err := guarded(c.AllowExec)
	if err != nil {
		return err
	}
	defer unguard()
	drain, stop := context.WithCancelCause(a.drain)
	defer stop(nil)
	a.calls = c.Concurrency
	b, err := a.backend(name, stop) // nothing can be kept any more: ask nothing more
	if err != nil {
		return err
	}
	defer b.Close()
	if c.Supervised {
		signal.Ignore(syscall.SIGPIPE) // a supervisor that has gone ends the input, and that drains
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelInfo}))
	events := newEventWriter(a.out, c.Supervised)
	defer func() {
		if n := events.close(a.clock); n > 0 {
			log.Warn("the supervisor did not read: events for its display were dropped", "events", n)
		}
	}()
	s := wiring.New(b, wiring.Config{
		Tenant: a.Tenant, Worker: name, Policy: a.policy, Clock: a.clock, Log: log.With("worker", name), Model: model,
		InFlight: c.Concurrency, Claims: c.Claims, Poll: time.Second, Grace: c.Grace, Kill: suicide, Observe: events.write,
		Read:      ingest.New(ingest.Config{Clock: a.clock, Cache: readerCache()}).Read,
		Functions: a.program.functions(exec), Handlers: a.program.Handlers,
		Stuck: func(ref pipeline.Ref) {
			log.Error("a handler ignores that its work was dropped; this process ends", "task", ref.String())
			suicide()
		},
		Gone: stop,
	})
	if c.Supervised {
		go drainAtEOF(os.Stdin, func() { stop(pipeline.ErrDraining) }) // ends with the process: a read of standard input cannot be interrupted
	}
	if !c.Supervised {
		fmt.Fprintf(a.out, "worker %s: %d calls at once, %s. Ctrl-C drains.\n", name, c.Concurrency, a.place())
	}
	var group pipeline.Group
	group.Go(func() { s.Reaper.Run(drain, sweepEvery) })
	if c.Idle {
		group.Go(func() { c.stopWhenIdle(drain, a, s, func() { stop(pipeline.ErrDraining) }) })
	}
	s.Worker().Run(a.ctx, drain)
	stop(pipeline.ErrDraining)
	group.Wait()
	switch cause := context.Cause(drain); {
	case errors.Is(cause, embedded.ErrFull):
		return c.full(a)
	case errors.Is(cause, pipeline.ErrNotMade):
		return c.gone(a, cause)
	}
	return nil
}

// gone is the end of a worker whose queue was removed: nothing would ever reach it.
func (c *workerCmd) gone(a *app, cause error) error {
	if c.Supervised {
		return codeError{exitGone, fmt.Sprintf("%s (%v)", a.goneText(), cause)}
	}
	return codeError{exitFailed, fmt.Sprintf("%s (%v)", a.goneText(), cause)}
}

// full is the end of a worker that found the disk full.
func (c *workerCmd) full(a *app) error {
	if c.Supervised {
		return codeError{exitFull, a.fullText()}
	}
	return codeError{exitFailed, a.fullText()}
}

// stopWhenIdle stops the worker once no job is open.
func (c *workerCmd) stopWhenIdle(ctx context.Context, a *app, s *wiring.System, stop func()) {
	for a.clock.Sleep(ctx, time.Second) == nil {
		jobs, _, err := s.Backend.Store.OpenJobs(ctx, "")
		if err == nil && len(jobs) == 0 {
			stop()
			return
		}
	}
}

// suicide is SIGKILL to this process: what a crash of the model's process, or a poison, comes to.
func suicide() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func newWorkerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), time.Now().UTC().Format("150405.000"))
}

// drainAtEOF drains the worker when its supervisor has gone, however it went.
func drainAtEOF(in io.Reader, drain func()) {
	_, _ = io.Copy(io.Discard, in)
	drain()
}
