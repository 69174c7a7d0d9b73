package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// runPlain is what one writes in an afternoon: an errgroup, and a SQLite table of replies that a second start skips. No
// claims, no money, no limiter, no record of tries, one process.
func runPlain(ctx context.Context, c child) (report, error) {
	began := time.Now()
	sync := "NORMAL"
	if c.FullSync {
		sync = "FULL"
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Dir, "plain.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+sync+")")
	if err != nil {
		return report{}, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)`); err != nil {
		return report{}, err
	}
	r, err := c.inOrder(ctx, func(ctx context.Context, key, reply string) error {
		_, err := db.ExecContext(ctx, `INSERT INTO replies (key, body) VALUES (?, ?) ON CONFLICT (key) DO NOTHING`, key, reply)
		return err
	})
	r.Makespan = time.Since(began)
	return r, err
}
