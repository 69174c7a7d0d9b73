// Command control answers the events of the control queue: it splits documents and finalizes jobs.
package main

import (
	"context"
	"os"
	"path/filepath"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
)

func main() {
	reader := ingest.New(ingest.Config{Clock: pipeline.NewRealClock(), Cache: filepath.Join(os.TempDir(), "holdfast")})
	p, err := function.Open(context.Background(), config.Control, reader.Read)
	if err != nil {
		function.Exit(err)
	}
	function.Serve(p.HandleQueue, p)
}
