package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"holdfast/pkg/pipeline"
)

// ErrLost is what a caller gets whose answer was lost: an [pipeline.ErrBusy], which says nothing about the write.
var ErrLost = fmt.Errorf("the answer was lost: %w", pipeline.ErrBusy)

// ErrKilled is what a caller gets once a test has decided that its process is dead.
var ErrKilled = errors.New("killed by the test")

// Pick selects calls by the names of their ops; no name selects every write.
type Pick []string

func (p Pick) takes(op Op) bool {
	if len(p) == 0 {
		return op.Write
	}
	return slices.Contains(p, op.Name)
}

// Lossy performs the first n calls picked and loses their answers.
func Lossy(store pipeline.Store, n int, ops ...string) pipeline.Store {
	return Wrap(store, LoseAnswers(n, ops...))
}

// LoseAnswers is what [Lossy] puts around a store, for queues and blobs too.
func LoseAnswers(n int, ops ...string) Around {
	var mu sync.Mutex
	left := n
	return func(ctx context.Context, op Op, do func(context.Context) error) error {
		mu.Lock()
		lose := left > 0 && Pick(ops).takes(op)
		if lose {
			left--
		}
		mu.Unlock()
		err := do(ctx)
		if lose {
			return ErrLost
		}
		return err
	}
}

// LoseWrites does not perform the first n calls picked; their callers cannot tell that from a lost answer.
func LoseWrites(n int, ops ...string) Around {
	var mu sync.Mutex
	left := n
	return func(ctx context.Context, op Op, do func(context.Context) error) error {
		mu.Lock()
		lose := left > 0 && Pick(ops).takes(op)
		if lose {
			left--
		}
		mu.Unlock()
		if lose {
			return ErrLost
		}
		return do(ctx)
	}
}

// Late holds calls back as a slow network does: the caller gets ErrLost at once, the write arrives when the test says.
type Late struct {
	mu   sync.Mutex
	left int
	pick Pick
	held []func(context.Context) error
}

// NewLate holds back the first n calls picked.
func NewLate(n int, ops ...string) *Late { return &Late{left: n, pick: ops} }

// Around is for [Wrap].
func (l *Late) Around(ctx context.Context, op Op, do func(context.Context) error) error {
	l.mu.Lock()
	hold := l.left > 0 && l.pick.takes(op)
	if hold {
		l.left--
		l.held = append(l.held, do)
	}
	l.mu.Unlock()
	if hold {
		return ErrLost
	}
	return do(ctx)
}

// Release lets the held writes arrive, in their order, and returns what each came to.
func (l *Late) Release(ctx context.Context) []error {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	var errs []error
	for _, do := range held {
		errs = append(errs, do(ctx))
	}
	return errs
}

// Counter numbers the calls picked, from 1, and tells of each before and after it. An error of Before stands in the
// place of the call; one of After in the place of its answer. With ErrKilled both make a process die at any write.
type Counter struct {
	Pick   Pick
	Before func(n int, op Op) error
	After  func(n int, op Op, err error) error

	mu sync.Mutex
	n  int
}

// Around is for [Wrap].
func (c *Counter) Around(ctx context.Context, op Op, do func(context.Context) error) error {
	if !c.Pick.takes(op) {
		return do(ctx)
	}
	c.mu.Lock()
	c.n++
	n := c.n
	c.mu.Unlock()
	if c.Before != nil {
		if err := c.Before(n, op); err != nil {
			return err
		}
	}
	err := do(ctx)
	if c.After != nil {
		if lost := c.After(n, op, err); lost != nil {
			return lost
		}
	}
	return err
}

// Count is how many calls were picked so far.
func (c *Counter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
