package cli

import (
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// How often the command line looks at a job that it follows. Each look reads all of the job's rows: on AWS twenty
// people who follow one of 500 chunks must not take the reads from its workers.
const (
	lookEvery      = 200 * time.Millisecond
	lookEveryOnAWS = time.Second
	lookSeldom     = 15 * time.Second // after several looks that the store had no time for
	lookPatience   = 10 * time.Minute // of a person who sees nothing new
)

// looks is when a command looks at its job next. A store that had no time for the last look is left to those who work:
// what was seen before stands meanwhile, with its time.
type looks struct {
	every time.Duration
	wait  time.Duration // before the next
	busy  time.Duration // since when the store has had no time, by the monotonic clock; 0 = it had some
}

func (a *app) looks() *looks {
	every := lookEvery
	if a.isAWS() {
		every = lookEveryOnAWS
	}
	return &looks{every: every, wait: every}
}

// took hears how a look went: busy says that nothing new was seen. What is wrong otherwise, or for too long, is returned.
func (l *looks) took(err error, now time.Duration) (busy bool, wrong error) {
	if !errors.Is(err, pipeline.ErrBusy) {
		l.wait, l.busy = l.every, 0
		return false, err
	}
	if l.busy == 0 {
		l.busy = now
	}
	if now-l.busy >= lookPatience {
		return true, fmt.Errorf("for %v the job could not be read; its workers go on if they can: %w", lookPatience, err)
	}
	l.wait = min(2*l.wait, lookSeldom)
	return true, nil
}
