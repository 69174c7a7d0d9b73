// Command workd is control and work as one process that polls both queues and reaps for itself. With the argument
// health it asks the process that runs beside it whether it is well.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		function.Exit(err)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 1 || len(args) == 1 && args[0] != "health":
		return fmt.Errorf("workd takes no argument, or health: got %q", args)
	case len(args) == 1:
		env, err := config.ReadEnvironment(config.Workd, os.LookupEnv)
		if err != nil {
			return err
		}
		return function.CheckHealth(context.Background(), env.Health)
	}
	reader := ingest.New(ingest.Config{Clock: pipeline.NewRealClock(), Cache: filepath.Join(os.TempDir(), "holdfast")})
	p, err := function.Open(context.Background(), config.Workd, reader.Read)
	if err != nil {
		return err
	}
	return p.RunUntilAsked()
}
