package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

func dirOf(s *Store) string { return filepath.Dir(s.path) }

func TestOpen(t *testing.T) {
	ctx := context.Background()
	// closed is the folder of a store in which a statement was run and that was closed.
	closed := func(t *testing.T, statement string) string {
		s, err := Open(ctx, t.TempDir(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.sql(t, statement)
		if err := s.CloseFile(); err != nil {
			t.Fatal(err)
		}
		return dirOf(s)
	}

	t.Run("a store of a newer version is refused, untouched, with what to do", func(t *testing.T) {
		dir := closed(t, fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion+1))
		before := readFile(t, filepath.Join(dir, fileName))
		_, err := Open(ctx, dir, Config{})
		if !errors.Is(err, pipeline.ErrNewer) || !strings.Contains(err.Error(), "Install the version that wrote it") {
			t.Errorf("got %v, want ErrNewer and what to do", err)
		}
		if !bytes.Equal(before, readFile(t, filepath.Join(dir, fileName))) {
			t.Error("the file was changed")
		}
	})

	t.Run("a store of the same version is opened again with what it had", func(t *testing.T) {
		dir := closed(t, `INSERT INTO replies (key, body) VALUES ('a', '{}')`)
		if !hasReply(t, openTest(t, dir, Config{}), "a") {
			t.Error("the reply is gone")
		}
	})

	t.Run("a process that was not the first to make the store makes nothing", func(t *testing.T) {
		s := openTest(t, t.TempDir(), Config{})
		late, err := s.reads.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = late.Close() }()
		if _, err := late.ExecContext(ctx, `PRAGMA query_only = 0`); err != nil {
			t.Fatal(err)
		}
		if err := createSchema(ctx, late); err != nil {
			t.Error(err)
		}
	})

	t.Run("a database of something else is refused", func(t *testing.T) {
		dir := closed(t, `PRAGMA application_id = 7`)
		if _, err := Open(ctx, dir, Config{}); !errors.Is(err, errForeign) {
			t.Errorf("got %v, want %v", err, errForeign)
		}
	})

	t.Run("a file that is no database is refused with what to do", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), bytes.Repeat([]byte("no database "), 400), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(ctx, dir, Config{}); err == nil || !strings.Contains(err.Error(), "use another folder") {
			t.Errorf("got %v, want what to do", err)
		}
	})

	t.Run("a folder whose name needs escaping is opened", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "50% of #1? ü")
		s := openTest(t, dir, Config{FullSync: true})
		if err := s.PutBlob(ctx, "a/b", []byte("x")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
			t.Error(err)
		}
	})

	t.Run("the setting says how far a commit goes", func(t *testing.T) {
		for full, want := range map[bool]int{false: 1, true: 2} {
			s := openTest(t, t.TempDir(), Config{FullSync: full})
			var got int
			var mode string
			if err := s.write(ctx, func(tx *tx) error {
				if err := tx.row(`PRAGMA synchronous`).Scan(&got); err != nil {
					return err
				}
				return tx.row(`PRAGMA journal_mode`).Scan(&mode)
			}); err != nil {
				t.Fatal(err)
			}
			if got != want || mode != "wal" {
				t.Errorf("FullSync %v: got synchronous %d and journal %s, want %d and wal", full, got, mode, want)
			}
		}
	})
}

func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	body := []byte(`"` + strings.Repeat("x", 50_000) + `"`)
	small, err := Open(ctx, dir, Config{MaxPages: 120})
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for err == nil && stored < 100 {
		if err = small.PutItem(ctx, "j", fmt.Sprintf("k%03d", stored), body); err == nil {
			stored++
		}
	}

	t.Run("a full disk is said, with what to do", func(t *testing.T) {
		if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "Free space") {
			t.Errorf("after %d items: got %v, want ErrFull and what to do", stored, err)
		}
	})
	t.Run("nothing is half made", func(t *testing.T) {
		if got := countRows(t, small, "items"); got != stored {
			t.Errorf("got %d items, want the %d that were acknowledged", got, stored)
		}
		job := pipeline.Job{ID: "large", Name: strings.Repeat("x", 100_000)}
		if _, _, err := small.Submit(ctx, job, pipeline.Task{Ref: pipeline.Ref{Job: "large", ID: pipeline.SplitTask}}); !errors.Is(err, ErrFull) {
			t.Errorf("submit: got %v, want ErrFull", err)
		}
		if got := countRows(t, small, "jobs") + countRows(t, small, "tasks"); got != 0 {
			t.Errorf("got %d rows of a submit that was refused", got)
		}
	})
	t.Run("what still fits is written, and reads go on", func(t *testing.T) {
		if err := small.PutItem(ctx, "j", "small", []byte(`1`)); err != nil {
			t.Error(err)
		}
		if _, err := small.Item(ctx, "j", "k000"); err != nil {
			t.Error(err)
		}
	})
	if err := small.CloseFile(); err != nil {
		t.Fatal(err)
	}
	t.Run("with more room the store works on", func(t *testing.T) {
		if err := openTest(t, dir, Config{}).PutItem(ctx, "j", "more", body); err != nil {
			t.Error(err)
		}
	})
	t.Run("a store that cannot even be made is said, and can be made later", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := Open(ctx, dir, Config{MaxPages: 3}); !errors.Is(err, ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
		openTest(t, dir, Config{})
	})
}

func TestShell(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, t.TempDir(), Config{})

	t.Run("a task's row has a column for each field, by its JSON name", func(t *testing.T) {
		columns := map[string]bool{}
		if err := s.query(ctx, func(row scanner) error {
			var name string
			err := row.Scan(&name)
			columns[name] = true
			return err
		}, `SELECT name FROM pragma_table_info('tasks')`); err != nil {
			t.Fatal(err)
		}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[pipeline.Task]()) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.Anonymous && name != "-" && !columns[name] {
				t.Errorf("there is no column %q for the field %s", name, field.Name)
			}
		}
	})

	t.Run("items and jobs can be asked as JSON", func(t *testing.T) {
		if err := s.PutItem(ctx, "j", "k", []byte(`{"kind":"lost"}`)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Submit(ctx, pipeline.Job{ID: "j", Name: "lease"}, pipeline.Task{Ref: pipeline.Ref{Job: "j", ID: pipeline.SplitTask}}); err != nil {
			t.Fatal(err)
		}
		var kind, name string
		if err := s.reads.QueryRow(`SELECT json_extract(items.body, '$.kind'), name FROM items JOIN jobs ON jobs.id = job`).Scan(&kind, &name); err != nil || kind != "lost" || name != "lease" {
			t.Errorf("got %q and %q, %v, want lost and lease", kind, name, err)
		}
	})

	t.Run("the reaper's view is an index", func(t *testing.T) {
		var plan []string
		if err := s.query(ctx, func(row scanner) error {
			var ignored, detail any
			err := row.Scan(&ignored, &ignored, &ignored, &detail)
			plan = append(plan, fmt.Sprint(detail))
			return err
		}, `EXPLAIN QUERY PLAN `+due, 0, 1, 0, "", ""); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(plan, "; "); !strings.Contains(got, "tasks_due") || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("got %s, want a search of tasks_due without a sort", got)
		}
	})
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// formatOne makes of an empty new store one of format 1, which had no jobs of messages and no turns.
var formatOne = []string{
	`DROP TABLE turns`,
	`DROP TABLE messages`,
	`CREATE TABLE messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	queue TEXT NOT NULL, body TEXT NOT NULL, sent_at INTEGER NOT NULL, visible_at INTEGER NOT NULL,
	receives INTEGER NOT NULL DEFAULT 0, receipt TEXT, received_at INTEGER, receiver TEXT
)`,
	`CREATE INDEX messages_visible ON messages (queue, visible_at, id)`,
	`CREATE INDEX messages_received ON messages (queue, receives)`,
	`PRAGMA user_version = 1`,
}

func TestMigration(t *testing.T) {
	ctx := context.Background()
	// old is the folder of a store of format 1 in which these statements were run.
	old := func(t *testing.T, statements ...string) string {
		s, err := Open(ctx, t.TempDir(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range append(slices.Clone(formatOne), statements...) {
			s.sql(t, statement)
		}
		if err := s.CloseFile(); err != nil {
			t.Fatal(err)
		}
		return dirOf(s)
	}
	put := func(job pipeline.JobID, task, visible int, receiver string) string {
		return fmt.Sprintf(`INSERT INTO messages (queue, body, sent_at, visible_at, receives, receiver) VALUES ('work', '%s', 1, %d, 1, %s)`,
			pipeline.Encode(pipeline.Message{Job: job, Task: pipeline.WorkTask(task)}), visible, receiver)
	}
	const now, later = 1000, 2000
	names := func(s *Store) (names []string) {
		if err := s.query(ctx, func(row scanner) error {
			var name string
			err := row.Scan(&name)
			names = append(names, name)
			return err
		}, `SELECT name FROM sqlite_schema UNION SELECT 'messages.' || name FROM pragma_table_info('messages') ORDER BY 1`); err != nil {
			t.Fatal(err)
		}
		return names
	}

	t.Run("a store of format 1 is opened, and its messages have their order", func(t *testing.T) {
		dir := old(
			t, put("a", 1, later, `'worker'`), // in flight
			put("b", 2, later, `''`), // put off
			put("a", 3, 1, `NULL`), put("b", 4, 1, `NULL`),
			`INSERT INTO messages (queue, body, sent_at, visible_at) VALUES ('work', 'no message', 1, 1), ('work', '[]', 1, 1)`,
		)
		s := openTest(t, dir, Config{Now: func() pipeline.Instant { return now }})
		if got, want := names(s), names(openTest(t, t.TempDir(), Config{})); !slices.Equal(got, want) {
			t.Errorf("got %v, want what a new store has: %v", got, want)
		}
		got, err := s.Queue("work", time.Minute, 3).Receive(ctx, 10, 0)
		if err != nil || len(got) != 4 {
			t.Fatalf("got %d deliveries, %v, want 4", len(got), err)
		}
		var bodies []string
		for _, d := range got {
			m, err := pipeline.DecodeMessage(d.Body)
			if err != nil {
				bodies = append(bodies, string(d.Body))
				continue
			}
			bodies = append(bodies, string(m.Job))
		}
		if want := []string{"b", "no message", "a", "[]"}; !slices.Equal(bodies, want) {
			t.Errorf("got %q, want %q", bodies, want)
		}
	})

	t.Run("one that cannot be migrated stays as it was", func(t *testing.T) {
		dir := old(t, `DROP INDEX messages_received`)
		if _, err := Open(ctx, dir, Config{}); err == nil {
			t.Fatal("it was opened")
		}
		raw, err := sql.Open("sqlite", filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		var version, added int
		if err := raw.QueryRow(`SELECT (SELECT user_version FROM pragma_user_version),
			(SELECT COUNT(*) FROM pragma_table_info('messages') WHERE name = 'job')`).Scan(&version, &added); err != nil || version != 1 || added != 0 {
			t.Errorf("got format %d and %d new columns, %v, want what was there", version, added, err)
		}
	})
}
