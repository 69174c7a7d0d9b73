package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/pkg/pipeline"
)

// seats are the calls that may be in flight at once.
type seats chan struct{}

// try asks until there is an answer; a wait between two tries holds no seat.
func (s seats) try(ctx context.Context, l load, key string) (string, error) {
	for try := 1; ; try++ {
		s <- struct{}{}
		reply, err := l.ask(ctx, key, try)
		<-s
		if err == nil {
			return reply, nil
		}
		if err := sleep(ctx, retryWait(try)); err != nil {
			return "", err
		}
	}
}

// sleep waits; it returns the cause of ctx if that ends first.
func sleep(ctx context.Context, wait time.Duration) error {
	return pipeline.NewRealClock().Sleep(ctx, wait)
}

// runNull makes the calls in goroutines, each chunk's stages in their order, and keeps nothing.
func runNull(ctx context.Context, c child) (report, error) {
	return c.inOrder(ctx, func(context.Context, string, string) error { return nil })
}

// inOrder makes the calls of each chunk stage by stage, as the work's prompts need it, and keeps each reply.
func (c child) inOrder(ctx context.Context, keep func(ctx context.Context, key, reply string) error) (report, error) {
	began := time.Now()
	s := make(seats, c.Load.AtOnce)
	chunks, ctx := errgroup.WithContext(ctx)
	for chunk := range c.Load.Chunks {
		chunks.Go(func() error {
			for stage, calls := range stageCalls {
				together, ctx := errgroup.WithContext(ctx)
				for call := range calls {
					together.Go(func() error { return s.one(ctx, c.Load, key(chunk, stage, call), keep) })
				}
				if err := together.Wait(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := chunks.Wait()
	return report{Makespan: time.Since(began), Calls: c.Load.calls()}, err
}

func (s seats) one(ctx context.Context, l load, key string, keep func(ctx context.Context, key, reply string) error) error {
	reply, err := s.try(ctx, l, key)
	if err != nil {
		return err
	}
	return keep(ctx, key, reply)
}

// runFlat makes all calls in goroutines, in no order: the bound for what knows of no stages.
func runFlat(ctx context.Context, c child) (report, error) {
	began := time.Now()
	s := make(seats, c.Load.AtOnce)
	all, ctx := errgroup.WithContext(ctx)
	for _, key := range c.Load.keys() {
		all.Go(func() error {
			return s.one(ctx, c.Load, key, func(context.Context, string, string) error { return nil })
		})
	}
	err := all.Wait()
	return report{Makespan: time.Since(began), Calls: c.Load.calls()}, err
}

// keys are all calls of the work.
func (l load) keys() []string {
	var all []string
	for chunk := range l.Chunks {
		for stage, calls := range stageCalls {
			for call := range calls {
				all = append(all, key(chunk, stage, call))
			}
		}
	}
	return all
}
