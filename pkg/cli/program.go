package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"holdfast/pkg/command"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// Program is the whole command line with a team's own handlers in it: its main is one call of Main.
type Program struct {
	Name        string // what the usage calls it; "" = holdfast
	Description string

	// Functions work on lines (or chunks) of the jobs that name them, by name@version: `run FILE --handler NAME`.
	Functions map[string]pipeline.Function
	// Handlers keep their own stages and checkpoints. Most need none of them: a Function gets the engine's.
	Handlers map[string]func(*wiring.Backend) pipeline.Handler
}

// Main runs the holdfast command line and returns the exit code.
func Main(args []string, out, errOut io.Writer) int { return Program{}.Main(args, out, errOut) }

// handlerIDs are the name@version of what the program registers.
func (p Program) handlerIDs() []string {
	ids := slices.Collect(maps.Keys(p.Functions))
	ids = append(ids, slices.Collect(maps.Keys(p.Handlers))...)
	slices.Sort(ids)
	return ids
}

// handler is the id that a person means: all of it, or its name where there is one version.
func (p Program) handler(name string) (string, error) {
	var found []string
	ids := p.handlerIDs()
	for _, id := range ids {
		if id == name {
			return id, nil
		}
		if before, _, _ := strings.Cut(id, "@"); before == name {
			found = append(found, id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", usage("--handler %s has several versions: %s", name, strings.Join(found, ", "))
	case len(ids) == 0:
		return "", usage("this program registers no handler; make one that does with cli.Program, or run a command with --exec")
	}
	return "", usage("there is no handler %q; this program has: %s", name, strings.Join(ids, ", "))
}

// functions are what a worker of the program runs. Commands only where they are allowed: whoever may submit a job
// chooses them.
func (p Program) functions(exec pipeline.Function) map[string]pipeline.Function {
	all := maps.Clone(p.Functions)
	if all == nil {
		all = map[string]pipeline.Function{}
	}
	if exec != nil {
		all[pipeline.ExecHandler] = exec
	}
	return all
}

// guarded is what runs commands, nil if they are not allowed, and its end.
func guarded(allowed bool) (exec pipeline.Function, stop func(), err error) {
	if !allowed {
		return nil, func() {}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	guard, err := command.StartGuard(self, "guard")
	if err != nil {
		return nil, nil, err
	}
	return guard.Run, guard.Close, nil
}

type guardCmd struct{}

// Run watches over the commands of the worker that started it.
func (guardCmd) Run(*app) error {
	command.Watch(os.Stdin)
	return nil
}
