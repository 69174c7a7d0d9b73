package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// readerCache is the folder for the compiled reader of PDF; empty if the user has none.
func readerCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "holdfast")
}

// slowReading is after how long a person is told what takes so long.
const slowReading = 1500 * time.Millisecond

var errSlow = errors.New("reading takes long")

// readable reads the document as a worker will, so that one that cannot be read is told at once, and tells what of it
// is not read.
func (a *app) readable(file string, source []byte) error {
	slow, done := a.clock.WithTimeout(a.drain, slowReading, errSlow)
	defer done()
	defer context.AfterFunc(slow, func() {
		if errors.Is(context.Cause(slow), errSlow) {
			fmt.Fprintf(a.err, "Reading %s (the first PDF takes some seconds longer: its reader is compiled, once) ...\n", filepath.Base(file))
		}
	})()
	d, err := ingest.New(ingest.Config{Clock: a.clock, Cache: readerCache()}).Read(a.drain, filepath.Base(file), source)
	switch {
	case errors.Is(err, pipeline.ErrDraining):
		return codeError{exitInterrupted, "stopped before anything was submitted"}
	case err != nil:
		return codeError{exitFailed, err.Error()}
	}
	for _, note := range d.Origin.Notes {
		fmt.Fprintf(a.err, "%s: %s\n", filepath.Base(file), note)
	}
	return nil
}

// originOf is the map back of the job's document; the zero one if there is none.
func originOf(ctx context.Context, s *wiring.System, job pipeline.Job) pipeline.Origin {
	body, err := s.Backend.Blobs.Blob(ctx, pipeline.OriginKey(job.Source))
	if err != nil {
		return pipeline.Origin{} // a plain text has none, and a report does not fail for want of one
	}
	origin, err := pipeline.Decode[pipeline.Origin](body, "map back")
	if err != nil {
		return pipeline.Origin{}
	}
	return origin
}
