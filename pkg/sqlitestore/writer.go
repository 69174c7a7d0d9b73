package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxTogether = 256                    // calls in one transaction
	sharedFor   = 100 * time.Millisecond // how long another process's write makes us leave gaps
)

// writer makes all writes of this process: one connection, many calls to a transaction. A call is answered after the
// commit. A call that fails does not fail its neighbours: then each is made again in a transaction of its own.
type writer struct {
	store *Store
	tx    *tx
	calls chan *call
	quit  chan struct{}
	done  sync.WaitGroup

	version  int64     // PRAGMA data_version: changes when another process has written
	sharedAt time.Time // when it last changed
	freedAt  time.Time // when we last let go of the lock
}

// call is a port call on its way through the writer.
type call struct {
	apply func(*tx) error // may be applied twice: only the last time counts
	parts bool            // more than one write, and a later one may be refused: that takes back all of them
	state atomic.Int32
	err   error
	done  chan struct{}
}

// States of a call. The caller may leave while it waits; not once it is taken.
const (
	waiting int32 = iota
	taken
	left
)

func startWriter(s *Store, conn *sql.Conn) *writer {
	w := &writer{store: s, tx: &tx{conn: conn, stmts: map[string]*sql.Stmt{}}, calls: make(chan *call), quit: make(chan struct{})}
	w.done.Go(w.loop)
	return w
}

// stop lets the writer finish what it has begun, and closes its connection.
func (w *writer) stop() {
	close(w.quit)
	w.done.Wait()
	w.tx.close()
}

// write makes what apply writes, all or nothing if a statement fails. Where apply refuses, it has written nothing.
func (s *Store) write(ctx context.Context, apply func(*tx) error) error {
	return s.writer.do(ctx, &call{apply: apply, done: make(chan struct{})})
}

// writeParts makes several writes, of which a later one may be refused: all or none.
func (s *Store) writeParts(ctx context.Context, apply func(*tx) error) error {
	return s.writer.do(ctx, &call{apply: apply, parts: true, done: make(chan struct{})})
}

// do hands the call over and waits for its answer. A call whose context ends before it is begun is not made; one that
// has begun is finished and answered.
func (w *writer) do(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case w.calls <- c:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.quit:
		return ErrClosed
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if c.state.CompareAndSwap(waiting, left) {
		return context.Cause(ctx)
	}
	<-c.done
	return c.err
}

func (w *writer) loop() {
	for {
		select {
		case first := <-w.calls:
			w.run(w.collect(first))
		case <-w.quit:
			return
		}
	}
}

// collect takes along what waits already.
func (w *writer) collect(first *call) []*call {
	batch := []*call{first}
	for len(batch) < maxTogether {
		select {
		case c := <-w.calls:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// run makes the calls of a batch in one transaction, or, if one of them fails, each in its own.
func (w *writer) run(batch []*call) {
	if err := w.begin(); err != nil {
		answer(batch, err)
		return
	}
	batch = take(batch)
	for _, c := range batch {
		if c.err = w.apply(c); w.tx.failed == nil {
			continue
		}
		w.rollback()
		if c.err == nil {
			c.err = w.tx.failed
		}
		if len(batch) == 1 {
			answer(batch, w.store.explain(context.Background(), c.err))
			return
		}
		for _, alone := range batch {
			w.run([]*call{alone})
		}
		return
	}
	if err := w.commit(); err != nil {
		w.rollback()
		answer(batch, err)
		return
	}
	for _, c := range batch {
		close(c.done)
	}
}

// take leaves out the calls whose callers have left. A call that was taken before stays.
func take(batch []*call) []*call {
	kept := batch[:0]
	for _, c := range batch {
		if c.state.CompareAndSwap(waiting, taken) || c.state.Load() == taken {
			kept = append(kept, c)
		}
	}
	return kept
}

func answer(batch []*call, err error) {
	for _, c := range batch {
		c.err = err
		close(c.done)
	}
}

// apply makes one call inside the transaction. A panic is the call's own error.
func (w *writer) apply(c *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.tx.failed = fmt.Errorf("a write panicked: %v", p)
		}
	}()
	if !c.parts {
		return c.apply(w.tx)
	}
	if _, err := w.tx.exec(`SAVEPOINT parts`); err != nil {
		return err
	}
	err = c.apply(w.tx)
	if w.tx.failed != nil {
		return err
	}
	if err != nil {
		_, _ = w.tx.exec(`ROLLBACK TO parts`) // if this fails, tx.failed says so
	}
	if _, failed := w.tx.exec(`RELEASE parts`); failed != nil {
		return failed
	}
	return err
}

// begin takes the write lock. Between two transactions it leaves other processes a gap if they write too: whoever
// waits for the lock looks only now and then.
func (w *writer) begin() error {
	w.tx.failed = nil
	if free := time.Since(w.freedAt); time.Since(w.sharedAt) < sharedFor && free < 2*busyPause {
		time.Sleep(2*busyPause - free)
	}
	ctx := context.Background()
	err := w.store.patiently(ctx, func() error {
		_, err := w.tx.exec(`BEGIN IMMEDIATE`)
		return err
	})
	w.tx.failed = nil
	if err != nil {
		return w.store.explain(ctx, err)
	}
	w.noticeOthers()
	return nil
}

func (w *writer) noticeOthers() {
	var version int64
	if err := w.tx.row(`PRAGMA data_version`).Scan(&version); err == nil && version != w.version {
		if w.version != 0 {
			w.sharedAt = time.Now()
		}
		w.version = version
	}
}

func (w *writer) commit() error {
	_, err := w.tx.exec(`COMMIT`)
	w.freedAt = time.Now()
	return w.store.explain(context.Background(), err)
}

// rollback may find that SQLite has rolled back already.
func (w *writer) rollback() { _, _ = w.tx.exec(`ROLLBACK`) }
