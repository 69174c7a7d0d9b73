package cli

import (
	"io"
	"maps"
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
func (p Program) functions(allowExec bool) map[string]pipeline.Function {
	all := maps.Clone(p.Functions)
	if all == nil {
		all = map[string]pipeline.Function{}
	}
	if allowExec {
		all[pipeline.ExecHandler] = command.Run
	}
	return all
}
