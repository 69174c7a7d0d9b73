// Package wiring turns settings into a working system: it opens a backend, and hands each step the ports it asks for.
// It is the only package that joins steps; the model, and what reads documents, are chosen by its caller. The backend of
// one machine is in its part embedded.
//
// It may decide which backend, and what a process has of slots and times where its caller says nothing. It may not
// decide anything about jobs, tasks or calls.
package wiring

import (
	"context"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/reap"
)

// Backend is where state lives: the store, the blobs and the two queues.
type Backend struct {
	Store  pipeline.Store
	Blobs  pipeline.Blobs
	Queues pipeline.Queues
	// Release makes visible the deliveries of a worker of this machine that has exited; nil where a backend cannot tell.
	Release func(ctx context.Context, worker string) error
	// Skew is by how much this machine's clock is ahead of the store's; nil where there is one clock.
	Skew func() time.Duration
	// Keeper is the store's, if it deletes in time what jobs left; nil where all is kept.
	Keeper reap.Keeper
	// Receipt is the receipt of a delivery that an event source received, by the handle that the event has; it counts
	// until then. nil where the handle itself is the receipt.
	Receipt func(handle string, until pipeline.Instant) string
	// Shared are the blobs as their addresses are given to others; nil where there are no addresses.
	Shared Addresses
	// Forget removes an ended job for good, with those replies and blobs; nil where nothing is ever removed.
	Forget func(ctx context.Context, job pipeline.Job, replies []pipeline.ReplyKey, blobs []string) error
	// CloseIdle closes the connections that nobody uses, and the next requests open others; nil where there are none.
	CloseIdle func()
	Close     func() error
}

// Addresses are links by which somebody without credentials may put or get one blob, for a while.
type Addresses interface {
	// PutURL is where the body may be put with an HTTP PUT that carries these headers; it must have exactly size bytes.
	PutURL(ctx context.Context, key string, size int64, within time.Duration) (url string, headers map[string]string, err error)
	// GetURL is where it may be got, as something of that type.
	GetURL(ctx context.Context, key, contentType string, within time.Duration) (url string, err error)
}

// InMemory is a backend that dies with the process: for tests and simulations.
func InMemory(p pipeline.Policy, clock pipeline.Clock) *Backend {
	store := memory.New()
	queue := func() pipeline.Queue {
		return memory.NewQueue(memory.QueueConfig{Visibility: p.Visibility(), MaxReceives: p.MaxReceives, Now: clock.Now})
	}
	return &Backend{
		Store: store, Blobs: store,
		Queues: pipeline.Queues{Control: queue(), Work: queue()},
		Forget: store.Forget,
		Close:  func() error { return nil },
	}
}
