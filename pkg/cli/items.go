package cli

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"holdfast/pkg/pipeline"
)

// itemFlags are for work that is not a model's.
type itemFlags struct {
	Exec       string        `help:"Run this command on every line of the file, e.g. 'sha256sum {}': {} is the line. No shell is involved." placeholder:"CMD" group:"Work that is not a model's:"`
	Handler    string        `help:"Let this handler of the program work on every line of the file." placeholder:"NAME" group:"Work that is not a model's:"`
	TryCost    string        `name:"try-cost" help:"The most that one try costs, in dollars, e.g. 0.03: for the plan and the ceiling." placeholder:"USD" group:"Work that is not a model's:"`
	TryTimeout time.Duration `name:"try-timeout" help:"Time of one try, e.g. 30s; then it is killed, and the attempt counts." placeholder:"DURATION" group:"Work that is not a model's:"`
}

// set says that the work is not a model's.
func (f itemFlags) set() bool { return f.Exec != "" || f.Handler != "" }

// definition is what the flags come to.
func (f itemFlags) definition(p Program) (pipeline.Definition, error) {
	var none pipeline.Definition
	if f.Exec != "" && f.Handler != "" {
		return none, usage("--exec and --handler are two ways to work on the same lines: choose one")
	}
	cost, err := parseMoney(f.TryCost)
	if err != nil {
		return none, usage("--try-cost: %v", err)
	}
	id := pipeline.ExecHandler
	if f.Handler != "" {
		if id, err = p.handler(f.Handler); err != nil {
			return none, err
		}
	}
	d := pipeline.LinesOf(id)
	d.TryCost, d.TryTimeout = cost, f.TryTimeout
	if f.Exec != "" {
		if d.Command, err = words(f.Exec); err != nil {
			return none, usage("--exec: %v", err)
		}
		if d.Dir, err = os.Getwd(); err != nil {
			return none, fmt.Errorf("find the current folder: %w", err)
		}
	}
	if err := d.Validate(); err != nil {
		return none, usage("%v", err)
	}
	return d, runnable(d)
}

// runnable refuses a command that cannot be found here: its workers would find nothing either.
func runnable(d pipeline.Definition) error {
	if len(d.Command) == 0 {
		return nil
	}
	if _, err := exec.LookPath(d.Command[0]); err != nil {
		return usage("--exec: %v", err)
	}
	return nil
}

// check refuses flags that say nothing about such work.
func (f itemFlags) check(pipelineName, profile string, m modelFlags) error {
	if !f.set() {
		if f.TryCost != "" || f.TryTimeout != 0 {
			return usage("--try-cost and --try-timeout are for --exec and --handler: a model's calls are priced by their tokens")
		}
		return nil
	}
	for name, given := range map[string]bool{
		"--pipeline": pipelineName != shippedPipeline, "--profile": profile != "", "--fail": m.Fail != "", "--pace": m.Pace != 0,
	} {
		if given {
			return usage("%s is about a model's calls, and with --exec or --handler there are none (to see failures, let the command fail)", name)
		}
	}
	return nil
}

// atOnce is how many tries are in flight unless a person says so: those of a model wait for the network, a command
// works here.
func (f itemFlags) atOnce(given int) int {
	switch {
	case given > 0:
		return given
	case f.set():
		return max(4, runtime.NumCPU())
	}
	return 64
}

// itemNoun is what the cells of a job are called: those of a handler are items.
func itemNoun(handler bool) (one, many string) {
	if handler {
		return "item", "items"
	}
	return "cell", "cells"
}

// worksOn names who works on a job: a model, a handler, or the command.
func worksOn(d pipeline.Definition, model pipeline.ModelInfo) string {
	switch {
	case len(d.Command) > 0:
		return "command " + shown(d.Command)
	case d.Handler != "":
		return "handler " + d.Handler
	}
	return "model " + model.Name
}

// shown is a command as a person would write it.
func shown(command []string) string {
	return pipeline.Cut(shellWords(command), 200)
}
