package work

import (
	"context"

	"holdfast/pkg/pipeline"
)

// crew counts the claims that this process may hold: a token each, per source. A row that was lost twice is claimed
// only by a worker that holds no other claim, so that a poison kills no neighbours: alone takes every token.
type crew struct {
	tokens []chan struct{}
	alone  chan struct{} // one at a time
}

func newCrew(sources []Source) *crew {
	c := &crew{alone: make(chan struct{}, 1)}
	c.alone <- struct{}{}
	for _, s := range sources {
		tokens := make(chan struct{}, max(1, s.Slots))
		for range cap(tokens) {
			tokens <- struct{}{}
		}
		c.tokens = append(c.tokens, tokens)
	}
	return c
}

// take waits for one token and takes up to limit. It returns 0 when ctx is done.
func (c *crew) take(ctx context.Context, source, limit int) int {
	select {
	case <-ctx.Done():
		return 0
	case <-c.tokens[source]:
	}
	n := 1
	for n < limit {
		select {
		case <-c.tokens[source]:
			n++
		default:
			return n
		}
	}
	return n
}

func (c *crew) give(source int) { c.tokens[source] <- struct{}{} }

// lone gives back the caller's own token, waits until this worker holds no claim at all and keeps it so until the
// returned function is called, which leaves the caller with its token again. Once drain is done nobody is waited for:
// there is no time for the work itself any more.
func (c *crew) lone(ctx, drain context.Context, source int) (release func(), err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(drain, func() { stop(pipeline.ErrDraining) })()
	c.give(source)
	taken := make([]int, len(c.tokens))
	undo := func() {
		for i, n := range taken {
			for range n {
				c.tokens[i] <- struct{}{}
			}
		}
	}
	own := func() { <-c.tokens[source] } // there is one: whoever took it gives it back
	select {
	case <-ctx.Done():
		own()
		return nil, context.Cause(ctx)
	case <-c.alone:
	}
	for i, tokens := range c.tokens {
		for range cap(tokens) {
			select {
			case <-ctx.Done():
				undo()
				c.alone <- struct{}{}
				own()
				return nil, context.Cause(ctx)
			case <-tokens:
				taken[i]++
			}
		}
	}
	return func() {
		taken[source]--
		undo()
		c.alone <- struct{}{}
	}, nil
}
