package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"holdfast/pkg/pipeline"
)

// readCache is the page cache of each reading connection, 512 KB: rows are read by key, and the system has their pages.
const readCache = "cache_size(-512)"

// The names in the store's folder.
const (
	fileName  = "holdfast.db"
	blobsName = "blobs"
)

// Config is how a store is opened. The zero value is what ships.
type Config struct {
	FullSync bool                    // survive a power cut, not only kill -9: every commit waits for the disk
	MaxPages int                     // the most pages of 4 KB that the file may have; 0 = as many as the disk holds
	BusyWait time.Duration           // how long to wait for other processes before ErrBusy; 0 = 5 s
	Owner    string                  // who receives, for Release; "" = nobody who can be asked for
	Now      func() pipeline.Instant // the clock of the queues; nil = this machine's
	OnFull   func(error)             // told of every write that found the disk full; may be nil
}

func (c Config) withDefaults() Config {
	if c.BusyWait <= 0 {
		c.BusyWait = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = func() pipeline.Instant { return pipeline.At(time.Now()) }
	}
	return c
}

// Store is an open store. Its methods may be called from any goroutine.
type Store struct {
	cfg    Config
	path   string // of the file
	writes *sql.DB
	reads  *sql.DB
	writer *writer
	blobs  *blobs
	bell   bell
	stmts  sync.Map // of reads: text -> *sql.Stmt
	closed sync.Once
}

var (
	_ pipeline.Store = (*Store)(nil)
	_ pipeline.Blobs = (*Store)(nil)
)

// Exists says that the folder holds a store's file, without making or opening one.
func Exists(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, fileName))
	return err == nil && info.Mode().IsRegular()
}

// Open opens the store in a folder and makes it if there is none; several processes may do so at once. A store of a
// newer version is refused with pipeline.ErrNewer and left as it is.
func Open(ctx context.Context, dir string, cfg Config) (*Store, error) {
	s, err := open(ctx, dir, cfg.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

func open(ctx context.Context, dir string, cfg Config) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, path: filepath.Join(dir, fileName)}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	if s.blobs, err = openBlobs(filepath.Join(dir, blobsName), cfg.FullSync); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	return s, nil
}

// connect opens the connections, the writer's first: it makes the schema.
func (s *Store) connect(ctx context.Context) (err error) {
	if s.writes, err = sql.Open("sqlite", s.dsn(s.writePragmas()...)); err != nil {
		return err
	}
	s.writes.SetMaxOpenConns(1)
	conn, err := s.prepareFile(ctx)
	if err != nil {
		return s.explain(ctx, err)
	}
	if s.reads, err = sql.Open("sqlite", s.dsn(fmt.Sprintf("busy_timeout(%d)", s.cfg.BusyWait.Milliseconds()), "query_only(1)", readCache)); err != nil {
		return errors.Join(err, conn.Close())
	}
	pool := max(4, runtime.GOMAXPROCS(0))
	s.reads.SetMaxOpenConns(pool)
	s.reads.SetMaxIdleConns(pool)
	s.writer = startWriter(s, conn)
	return nil
}

func (s *Store) writePragmas() []string {
	pragmas := []string{
		"busy_timeout(0)", // the writer waits by itself: evenly, and for no longer than BusyWait
		"wal_autocheckpoint(4000)",
		"journal_size_limit(67108864)",
		"synchronous(NORMAL)",
	}
	if s.cfg.FullSync {
		pragmas[len(pragmas)-1] = "synchronous(FULL)"
	}
	if s.cfg.MaxPages > 0 {
		pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", s.cfg.MaxPages))
	}
	return pragmas
}

func (s *Store) dsn(pragmas ...string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

// CloseFile finishes the writes that were begun, refuses later ones, and closes the file. A second one does nothing.
// (Close is a write of package pipeline's claim protocol.)
func (s *Store) CloseFile() (err error) {
	s.closed.Do(func() { err = s.disconnect() })
	return err
}

// disconnect closes what connect opened; the writer's connection last, since the last one folds the log into the file.
func (s *Store) disconnect() error {
	var errs []error
	if s.writer != nil {
		s.writer.stop()
	}
	if s.blobs != nil {
		errs = append(errs, s.blobs.close())
	}
	s.stmts.Range(func(_, stmt any) bool {
		errs = append(errs, stmt.(*sql.Stmt).Close())
		return true
	})
	for _, db := range []*sql.DB{s.reads, s.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
