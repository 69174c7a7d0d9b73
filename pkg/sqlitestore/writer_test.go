package sqlitestore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
)

// hold makes the writer wait inside a transaction until the returned function is called, and returns once it does.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	held, done, released := make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		done <- s.write(context.Background(), func(*tx) error {
			close(held)
			<-released
			return nil
		})
	}()
	<-held
	release = sync.OnceFunc(func() {
		close(released)
		if err := <-done; err != nil {
			t.Errorf("the call that held the writer: %v", err)
		}
	})
	t.Cleanup(release) // or the store could not be closed
	return release
}

// hand gives a call to the writer as one that waits, and returns where its answer comes. The writer must be held.
func hand(ctx context.Context, s *Store, c *call) <-chan error {
	answer := make(chan error, 1)
	c.done = make(chan struct{})
	go func() { answer <- s.writer.do(ctx, c) }()
	return answer
}

func putReply(key string) *call {
	return &call{apply: func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO replies (key, body) VALUES (?, '{}')`, key)
		return err
	}}
}

func hasReply(t *testing.T, s *Store, key string) bool {
	t.Helper()
	var found bool
	if err := s.reads.QueryRow(`SELECT EXISTS (SELECT 1 FROM replies WHERE key = ?)`, key).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGroupCommit(t *testing.T) {
	ctx := context.Background()
	together := func(s *Store, calls ...*call) []error {
		waits := make([]chan struct{}, len(calls))
		for i, c := range calls {
			waits[i] = make(chan struct{})
			c.done = waits[i]
		}
		s.writer.run(calls)
		errs := make([]error, len(calls))
		for i, c := range calls {
			<-waits[i]
			errs[i] = c.err
		}
		return errs
	}
	// open leaves the writer to the test: its loop is held off by running the batches in the test's own goroutine.
	open := func(t *testing.T) *Store { return openTest(t, t.TempDir(), Config{}) }

	t.Run("a statement that fails does not fail its neighbours", func(t *testing.T) {
		s := open(t)
		bad := &call{apply: func(tx *tx) error {
			_, err := tx.exec(`INSERT INTO no_such_table VALUES (1)`)
			return err
		}}
		errs := together(s, putReply("a"), bad, putReply("b"))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil {
			t.Errorf("got %v, want only the second to fail", errs)
		}
		if !hasReply(t, s, "a") || !hasReply(t, s, "b") {
			t.Error("a neighbour's write is gone")
		}
	})

	t.Run("a panic fails its own call and takes back what that call wrote", func(t *testing.T) {
		s := open(t)
		bad := &call{apply: func(tx *tx) error {
			_, _ = tx.exec(`INSERT INTO replies (key, body) VALUES ('half', '{}')`)
			panic("no")
		}}
		errs := together(s, putReply("a"), bad, putReply("b"))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil {
			t.Errorf("got %v, want only the second to fail", errs)
		}
		if !hasReply(t, s, "a") || !hasReply(t, s, "b") || hasReply(t, s, "half") {
			t.Error("want both neighbours' writes and nothing of the call that panicked")
		}
	})

	t.Run("an error that a call swallowed is not committed", func(t *testing.T) {
		s := open(t)
		bad := &call{apply: func(tx *tx) error {
			_, _ = tx.exec(`INSERT INTO replies (key, body) VALUES ('half', '{}')`)
			_, _ = tx.exec(`INSERT INTO no_such_table VALUES (1)`)
			return nil
		}}
		errs := together(s, bad, putReply("a"))
		if errs[0] == nil || errs[1] != nil || hasReply(t, s, "half") {
			t.Errorf("got %v, want the first to fail and nothing of it stored", errs)
		}
	})

	t.Run("a refusal of several writes takes back all of them", func(t *testing.T) {
		s := open(t)
		refused := errors.New("refused")
		bad := &call{parts: true, apply: func(tx *tx) error {
			if _, err := tx.exec(`INSERT INTO replies (key, body) VALUES ('half', '{}')`); err != nil {
				return err
			}
			return refused
		}}
		errs := together(s, putReply("a"), bad, putReply("b"))
		if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] != nil {
			t.Errorf("got %v, want only the second refused", errs)
		}
		if !hasReply(t, s, "a") || !hasReply(t, s, "b") || hasReply(t, s, "half") {
			t.Error("want both neighbours' writes and nothing of the refused call")
		}
	})

	t.Run("no answer is delivered before the commit", func(t *testing.T) {
		s := open(t)
		ends := &call{apply: func(tx *tx) error { // so that the writer's own commit fails
			_, err := tx.exec(`ROLLBACK`)
			return err
		}}
		errs := together(s, putReply("a"), ends, putReply("b"))
		for i, err := range errs {
			if err == nil {
				t.Errorf("call %d was answered although its transaction was never committed", i)
			}
		}
		if errs := together(s, putReply("c")); errs[0] != nil {
			t.Errorf("the next write: %v", errs[0])
		}
	})

	t.Run("a call whose caller has left is not made", func(t *testing.T) {
		s := open(t)
		release := hold(t, s)
		leaving, leave := context.WithCancelCause(ctx)
		c := putReply("a")
		answer := hand(leaving, s, c)
		leave(pipeline.ErrCancelled)
		if err := <-answer; !errors.Is(err, pipeline.ErrCancelled) {
			t.Errorf("got %v, want the cause of the cancel", err)
		}
		release()
		if err := s.CloseFile(); err != nil {
			t.Fatal(err)
		}
		if hasReply(t, openTest(t, dirOf(s), Config{}), "a") {
			t.Error("the write was made although its caller had left")
		}
	})

	t.Run("a caller that leaves after the lock was asked for is not served", func(t *testing.T) {
		s := open(t)
		c := putReply("a")
		c.done = make(chan struct{})
		c.state.Store(left)
		b := putReply("b")
		b.done = make(chan struct{})
		s.writer.run([]*call{c, b})
		if hasReply(t, s, "a") || !hasReply(t, s, "b") {
			t.Error("want only the write of the caller that stayed")
		}
	})

	t.Run("a call that was begun is finished and answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &writer{calls: make(chan *call), quit: make(chan struct{})} // nobody but the test takes its calls
			leaving, leave := context.WithCancel(ctx)
			c := &call{done: make(chan struct{})}
			answer := make(chan error, 1)
			go func() { answer <- w.do(leaving, c) }()
			<-w.calls
			c.state.Store(taken)
			leave()
			synctest.Wait()
			select {
			case err := <-answer:
				t.Errorf("answered with %v before the write was finished", err)
			default:
			}
			close(c.done)
			if err := <-answer; err != nil {
				t.Errorf("got %v, want the answer of a write that was made", err)
			}
		})
	})

	t.Run("a done context makes no write", func(t *testing.T) {
		done, cancel := context.WithCancelCause(ctx)
		cancel(pipeline.ErrDraining)
		w := &writer{calls: make(chan *call, 100), quit: make(chan struct{})} // always ready to take one
		for range cap(w.calls) {
			if err := w.do(done, putReply("a")); !errors.Is(err, pipeline.ErrDraining) {
				t.Errorf("got %v, want the cause", err)
			}
		}
		if len(w.calls) > 0 {
			t.Errorf("%d calls reached the writer", len(w.calls))
		}
	})

	t.Run("a closed store says so", func(t *testing.T) {
		s := open(t)
		if err := errors.Join(s.CloseFile(), s.CloseFile()); err != nil {
			t.Fatal(err)
		}
		if err := s.PutItem(ctx, "j", "k", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want %v", err, ErrClosed)
		}
	})
}

func TestBusy(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	other := openTest(t, dir, Config{})
	s := openTest(t, dir, Config{BusyWait: 20 * time.Millisecond})
	release := hold(t, other)
	busy := beginOn(t, s) // what a held lock answers
	release()

	t.Run("a lock is not waited for for ever", func(t *testing.T) {
		tries := 0
		err := s.patiently(ctx, func() error {
			if tries++; tries > 2000 {
				return errors.New("it was tried for ever")
			}
			return busy
		})
		if !isBusy(err) || tries < 2 {
			t.Errorf("got %v after %d tries, want the busy error after some", err, tries)
		}
	})

	t.Run("who waits for a lock may leave", func(t *testing.T) {
		leaving, leave := context.WithCancelCause(ctx)
		leave(pipeline.ErrDraining)
		if err := s.patiently(leaving, func() error { return busy }); !errors.Is(err, pipeline.ErrDraining) {
			t.Errorf("got %v, want the cause", err)
		}
	})

	t.Run("a lock that is held too long is ErrBusy, and nothing is written", func(t *testing.T) {
		release := hold(t, other)
		_, err := s.PutReply(ctx, pipeline.Reply{Key: "a"})
		release()
		if !errors.Is(err, pipeline.ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		if hasReply(t, s, "a") {
			t.Error("it was written")
		}
	})

	t.Run("a read does not wait for a writer", func(t *testing.T) {
		release := hold(t, other)
		defer release()
		if _, err := s.Job(ctx, "none"); !errors.Is(err, pipeline.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})

	t.Run("a lock that is released in time is waited for", func(t *testing.T) {
		tries := 0
		err := openTest(t, dir, Config{}).patiently(ctx, func() error {
			if tries++; tries < 4 {
				return busy
			}
			return nil
		})
		if err != nil || tries != 4 {
			t.Errorf("got %v after %d tries, want the fourth to succeed", err, tries)
		}
	})
}

// beginOn asks for the write lock beside the store's writer and returns what SQLite answers.
func beginOn(t *testing.T, s *Store) error {
	t.Helper()
	conn, err := s.reads.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err = conn.ExecContext(context.Background(), `PRAGMA query_only = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err = conn.ExecContext(context.Background(), `BEGIN IMMEDIATE`); !isBusy(err) {
		t.Fatalf("got %v, want the lock to be held", err)
	}
	return err
}
