// Package wiring turns settings into a working system: it opens a backend, and hands each step the ports it asks for.
// It is the only package that joins steps; the model is chosen by its caller.
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
	"holdfast/pkg/sqlitestore"
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
	Close  func() error
}

// Embedded is how the embedded backend is opened.
type Embedded struct {
	Dir      string
	Owner    string // the process's worker, if it is one
	FullSync bool
	MaxPages int
	OnFull   func(error) // told of every write that found the disk full; may be nil
}

// ErrFull says that the disk is full: a write was not made, not even in part.
var ErrFull = sqlitestore.ErrFull

// HasEmbedded says that there is a store in the folder, without making one.
func HasEmbedded(dir string) bool { return sqlitestore.Exists(dir) }

// OpenEmbedded opens the backend in a folder: one SQLite file that several processes share, and blobs beside it.
func OpenEmbedded(ctx context.Context, e Embedded, p pipeline.Policy) (*Backend, error) {
	store, err := sqlitestore.Open(ctx, e.Dir, sqlitestore.Config{Owner: e.Owner, FullSync: e.FullSync, MaxPages: e.MaxPages, OnFull: e.OnFull})
	if err != nil {
		return nil, err
	}
	return &Backend{
		Store: store, Blobs: store,
		Queues: pipeline.Queues{
			Control: store.Queue(pipeline.ControlQueue, p.Visibility(), p.MaxReceives),
			Work:    store.Queue(pipeline.WorkQueue, p.Visibility(), p.MaxReceives),
		},
		Release: store.Release,
		Close:   store.CloseFile,
	}, nil
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
		Close:  func() error { return nil },
	}
}
