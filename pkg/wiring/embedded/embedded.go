// Package embedded opens the backend of one machine: one SQLite file that several processes share, and blobs beside it.
//
// It stands apart from wiring so that what runs on AWS does not carry a database. It may not decide anything about
// jobs, tasks or calls.
package embedded

import (
	"context"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqlitestore"
	"holdfast/pkg/wiring"
)

// Config is how the backend is opened.
type Config struct {
	Dir      string
	Owner    string // the process's worker, if it is one
	FullSync bool
	MaxPages int
	OnFull   func(error) // told of every write that found the disk full; may be nil
}

// ErrFull says that the disk is full: a write was not made, not even in part.
var ErrFull = sqlitestore.ErrFull

// Exists says that there is a store in the folder, without making one.
func Exists(dir string) bool { return sqlitestore.Exists(dir) }

// Open opens the backend in a folder.
func Open(ctx context.Context, c Config, p pipeline.Policy) (*wiring.Backend, error) {
	store, err := sqlitestore.Open(ctx, c.Dir, sqlitestore.Config{Owner: c.Owner, FullSync: c.FullSync, MaxPages: c.MaxPages, OnFull: c.OnFull})
	if err != nil {
		return nil, err
	}
	return &wiring.Backend{
		Store: store, Blobs: store,
		Queues: pipeline.Queues{
			Control: store.Queue(pipeline.ControlQueue, p.Visibility(), p.MaxReceives),
			Work:    store.Queue(pipeline.WorkQueue, p.Visibility(), p.MaxReceives),
		},
		Release: store.Release,
		Close:   store.CloseFile,
	}, nil
}
