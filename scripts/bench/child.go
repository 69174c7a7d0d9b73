package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// child is one run of one contender, in a process of its own, so that memory and CPU are its alone.
type child struct {
	Contender string
	Load      load
	Dir       string // empty, and the run's own
	Document  string // cut into Load.Chunks chunks
	FullSync  bool
	Feed      bool
	Server    string // address of the contender's server
}

// report is what a run tells.
type report struct {
	Makespan time.Duration
	Calls    int
	CPU      time.Duration // of the process, user and system
	RSS      int64         // the most it had, bytes
	LogBytes int64
	FeedLag  []time.Duration
}

// contenders by name.
var contenders = map[string]func(context.Context, child) (report, error){
	"null": runNull, "flat": runFlat, "plain": runPlain, "holdfast": runHoldfast, "river": runRiver, "asynq": runAsynq,
}

// childMain is the process of one run: the child as JSON in, the report as JSON out.
func childMain() error {
	var c child
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		return err
	}
	stop, err := profile()
	if err != nil {
		return err
	}
	before := cpu()
	r, err := contenders[c.Contender](context.Background(), c)
	stop()
	if err != nil {
		return err
	}
	r.CPU = cpu() - before
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	r.RSS = usage.Maxrss << 10
	return json.NewEncoder(os.Stdout).Encode(r)
}

func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it fails for no process of its own
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// run starts the child's process and waits for its report.
func (c child) run(ctx context.Context) (report, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return report{}, err
	}
	defer os.RemoveAll(dir)
	c.Dir = dir
	if c.Document, err = document(c.Load.Chunks, "A"); err != nil {
		return report{}, err
	}
	in, err := json.Marshal(c)
	if err != nil {
		return report{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return report{}, err
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "child")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errOut
	if err := cmd.Run(); err != nil {
		return report{}, fmt.Errorf("run %s: %w: %s", c.Contender, err, strings.TrimSpace(errOut.String()))
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("read the report of %s: %w", c.Contender, err)
	}
	return r, nil
}
