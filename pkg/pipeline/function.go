package pipeline

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Function works on one chunk at a time: what a definition with a Handler runs instead of calls to a model. It gets what
// a call gets: a stored answer is used before it is run, its tries are counted before they start and capped, what it
// returns is stored before it is used. One run is one try.
//
// It returns when ctx is done, and soon: the job is cancelled, or the try's time is over. The kind of its error decides
// what happens next: see [GiveUp], [TryAgain] and [ComeLater]; any other error, or a panic, fails the attempt, which
// counts. What it writes elsewhere it should write under the item's Generation, so that a late worker's write loses.
type Function func(ctx context.Context, item WorkItem) (Output, error)

// WorkItem is one chunk as a Function gets it, and which sending of it this is.
type WorkItem struct {
	Text   string // the line, if the definition's chunks are lines; else the chunk's core
	Number int    // of the chunk, from 0
	Name   string // of the document that was submitted

	Command []string // of the definition, for handlers that run one
	Dir     string   // where the command runs
	TryCost Money    // the most that this try may cost

	Job        JobID
	Task       TaskID
	Attempt    int   // counted attempts of the task, this one included
	Generation int64 // of the claim: it only grows, so a write under a lower one is late
	Try        int   // within the attempt, from 1
}

// Output is what a Function made of an item.
type Output struct {
	Text string // the answer: it is stored, and what the item's cell is answered with; UTF-8
	// Cost is what the try really cost; 0 = counted as the definition's TryCost. That bounds what was shown before the
	// run: a try that cost more is counted in full, and ends the job at once, cancelled for this reason. A cost below
	// nothing fails the attempt and counts as TryCost.
	Cost Money
	Free bool // it cost nothing, whatever the definition says
}

// GiveUp is err as a failure of this item that no try can help: its cell fails at once, its neighbours go on.
func GiveUp(err error) error { return handlerError(Invalid, err, 0) }

// TryAgain is err as a failure that may pass: the item is tried again in this attempt, and the attempt counts if that
// does not help.
func TryAgain(err error) error { return handlerError(Unavailable, err, 0) }

// ComeLater is err as a failure that is everybody's, before anything was done (a quota, an outage): the item waits, at
// least for after, and no attempt is used up.
func ComeLater(err error, after time.Duration) error { return handlerError(Throttled, err, after) }

func handlerError(kind Kind, err error, after time.Duration) error {
	return &ModelError{Failure: Fail(kind, "%v", err), RetryAfter: after, Err: err}
}

// FunctionFailure is what an error of a Function stands for.
func FunctionFailure(err error) *ModelError {
	var failed *ModelError
	if errors.As(err, &failed) {
		return failed
	}
	return &ModelError{Failure: Fail(Broken, "%v", err), Err: err}
}

// Line is the one line of a chunk that holds more than white space, without its end: what a handler of lines works on.
func Line(core string) string {
	for line := range strings.Lines(core) {
		if line = strings.TrimSuffix(line, "\n"); strings.TrimSpace(line) != "" {
			return strings.TrimSuffix(line, "\r")
		}
	}
	return ""
}

// maxLines is the most lines that [LinesOf] takes as chunks: what one manifest holds.
const maxLines = 20_000

// LinesOf is the definition of a job whose chunks are the lines of its document, each the work of one handler.
func LinesOf(handler string) Definition {
	name, version, _ := strings.Cut(handler, "@")
	return Definition{
		Name: name, Version: version, Title: name, Handler: handler,
		Stages:   []Stage{{Name: "work", Calls: []Call{{ID: "work", Title: name}}}},
		Chunking: Chunking{Lines: true, MaxChunks: maxLines}, Tolerance: 1,
	}
}

// HandlerInfo is what stands for the model of a job whose definition has a handler.
func (d Definition) HandlerInfo() ModelInfo {
	name, version, _ := strings.Cut(d.Handler, "@")
	return ModelInfo{Name: name, Version: version, Handler: true, Free: d.TryCost == 0, PricedAs: name}
}
