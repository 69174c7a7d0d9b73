package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"holdfast/pkg/pipeline"
)

// Errors of this backend, besides those of the ports.
var (
	// ErrFull says that the disk, or Config.MaxPages, is used up. The write was not made, not even in part.
	ErrFull = errors.New("the disk is full")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// explain gives an error of SQLite or of the file system the name that the ports have for it, and tells a person
// what to do. It keeps every other error as it is.
func (s *Store) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return context.Cause(ctx)
	case errors.Is(err, sql.ErrNoRows):
		return pipeline.ErrNotFound
	case isBusy(err):
		return fmt.Errorf("%w: other processes held %s for %v (%w)", pipeline.ErrBusy, s.path, s.cfg.BusyWait, err)
	case isFull(err):
		err = fmt.Errorf("%w: nothing was written. Free space on the disk that holds %s, then run the same again; what was stored is kept (%w)", ErrFull, s.path, err)
		if s.cfg.OnFull != nil {
			s.cfg.OnFull(err)
		}
		return err
	case primaryCode(err) == sqlite3.SQLITE_NOTADB, primaryCode(err) == sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged or not a Holdfast store. Move it away or use another folder (%w)", s.path, err)
	case isDenied(err):
		return fmt.Errorf("%s cannot be written: see who may write its folder, or use another folder (%w)", s.path, err)
	}
	return err
}

func isDenied(err error) bool {
	switch primaryCode(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}

func isBusy(err error) bool {
	code := primaryCode(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) {
		return true
	}
	return primaryCode(err) == sqlite3.SQLITE_FULL || extendedCode(err) == sqlite3.SQLITE_IOERR_SHMSIZE
}

func primaryCode(err error) int { return extendedCode(err) & 0xff }

func extendedCode(err error) int {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return sqlite3.SQLITE_OK
	}
	return failed.Code()
}
