package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"holdfast/pkg/pipeline"
)

// schemaVersion is what PRAGMA user_version says of a file that this program wrote. Older files are migrated.
const schemaVersion = 2

// applicationID is what PRAGMA application_id says of our files: "HFST".
const applicationID = 0x48465354

// listed is pipeline.Task.Listed in SQL: which rows the due index holds.
const listed = `(status IN ('pending', 'claimed', 'parked') OR (status = 'abandoned' AND COALESCE(buried, 0) = 0))`

// Names of columns are the JSON names of the fields. A task's row has a column each; what is read and written whole
// is JSON text in body, with generated columns for what conditions and listings need.
var schema = []string{
	`CREATE TABLE jobs (
	id         TEXT PRIMARY KEY,
	body       TEXT NOT NULL,
	tenant     TEXT    AS (body ->> '$.tenant'),
	name       TEXT    AS (body ->> '$.name'),
	status     TEXT    AS (body ->> '$.status'),
	epoch      INTEGER AS (body ->> '$.epoch'),
	created_at INTEGER AS (body ->> '$.created_at')
)`,
	`CREATE INDEX jobs_by_tenant ON jobs (tenant, created_at DESC, id)`,
	`CREATE INDEX jobs_open ON jobs (id) WHERE status NOT IN ('completed', 'partial', 'failed', 'cancelled')`,
	`CREATE TABLE tasks (
	job TEXT NOT NULL, task TEXT NOT NULL, tenant TEXT, status TEXT,
	generation INTEGER, attempts INTEGER, deferrals INTEGER, losses INTEGER, stages INTEGER, accepted INTEGER, bodies TEXT,
	claimed_by TEXT, claim_id TEXT, claimed_at INTEGER, expires_at INTEGER, stage INTEGER, stage_at INTEGER,
	answers INTEGER, allowed INTEGER, max_tries INTEGER,
	ready_at INTEGER, due_at INTEGER, ring INTEGER, rings INTEGER,
	ended_by TEXT, reason TEXT, buried INTEGER,
	shard INTEGER NOT NULL,
	PRIMARY KEY (job, task)
) WITHOUT ROWID`,
	`CREATE INDEX tasks_due ON tasks (shard, due_at, job, task) WHERE due_at > 0 AND ` + listed,
	`CREATE TABLE items (job TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (job, key))`,
	`CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)`,
	`CREATE TABLE findings (
	job TEXT NOT NULL, seq INTEGER NOT NULL, task TEXT NOT NULL, stage INTEGER NOT NULL, generation INTEGER NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (job, seq),
	UNIQUE (job, task, stage, generation)
)`,
	`CREATE TABLE budgets (job TEXT PRIMARY KEY, body TEXT NOT NULL)`,
	`CREATE TABLE limits (model TEXT PRIMARY KEY, arrival INTEGER, not_before INTEGER)`,
	`CREATE TABLE cooldowns (model TEXT PRIMARY KEY, body TEXT NOT NULL)`,
	`CREATE TABLE messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	queue TEXT NOT NULL, job TEXT NOT NULL DEFAULT '', body TEXT NOT NULL, sent_at INTEGER NOT NULL, visible_at INTEGER NOT NULL,
	receives INTEGER NOT NULL DEFAULT 0, receipt TEXT, received_at INTEGER, receiver TEXT
)`,
	messagesWaiting, messagesTaken,
	turns,
	`CREATE TABLE dead_letters (id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, body TEXT NOT NULL)`,
	`CREATE INDEX dead_letters_by_queue ON dead_letters (queue, id)`,
	fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion),
}

// migrations make of a file of that format one of the next.
var migrations = map[int64][]string{
	1: { // which job a message is of, and whose turn it is
		`ALTER TABLE messages ADD COLUMN job TEXT NOT NULL DEFAULT ''`,
		`UPDATE messages SET
	job = COALESCE(CASE WHEN json_valid(body) THEN body ->> '$.job' END, ''),
	receiver = NULLIF(receiver, '')`,
		`DROP INDEX messages_visible`,
		`DROP INDEX messages_received`,
		messagesWaiting, messagesTaken, turns,
		`PRAGMA user_version = 2`,
	},
}

const (
	messagesWaiting = `CREATE INDEX messages_waiting ON messages (queue, job, visible_at, id)`
	messagesTaken   = `CREATE INDEX messages_taken ON messages (queue, job, visible_at) WHERE receiver IS NOT NULL`
	turns           = `CREATE TABLE turns (turn INTEGER PRIMARY KEY, queue TEXT NOT NULL, job TEXT NOT NULL, UNIQUE (queue, job))`
)

// errForeign is a database that is none of ours.
var errForeign = errors.New("holdfast.db is not a Holdfast store: use another folder, or move that file away")

// prepareFile returns the writer's connection to a file that has our schema, making it if the file is new.
func (s *Store) prepareFile(ctx context.Context) (*sql.Conn, error) {
	var conn *sql.Conn
	err := s.patiently(ctx, func() (err error) {
		if conn == nil {
			if conn, err = s.writes.Conn(ctx); err != nil {
				return err
			}
		}
		return makeSchema(ctx, conn)
	})
	if err != nil && conn != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, err
}

// makeSchema looks at the format before it changes anything.
func makeSchema(ctx context.Context, conn *sql.Conn) error {
	if found, err := format(ctx, conn); err != nil || found == schemaVersion {
		return err
	}
	return createSchema(ctx, conn)
}

// createSchema looks again under the lock: another process may have been first. The schema, or what an older one
// lacks, is one transaction, so that a kill leaves all of it or nothing.
func createSchema(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	found, err := format(ctx, conn)
	if err == nil && found == 0 {
		err = execAll(ctx, conn, schema)
		found = schemaVersion
	}
	for ; err == nil && found < schemaVersion; found++ {
		err = execAll(ctx, conn, migrations[found])
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		_, _ = conn.ExecContext(context.Background(), `ROLLBACK`) // fails where SQLite rolled back already
	}
	return err
}

func execAll(ctx context.Context, conn *sql.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// format is the version of the schema that the file has; 0 if it has none yet.
func format(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	var application, tables int64
	err = conn.QueryRowContext(ctx, `SELECT
		(SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id),
		(SELECT COUNT(*) FROM sqlite_schema)`).Scan(&version, &application, &tables)
	switch {
	case err != nil:
		return 0, err
	case tables == 0 && version == 0:
		return 0, nil
	case application != applicationID || version < 1:
		return 0, errForeign
	case version > schemaVersion:
		return 0, fmt.Errorf("%w: %s has format %d and this program knows %d. Install the version that wrote it, or use another folder; the file was not touched",
			pipeline.ErrNewer, fileName, version, schemaVersion)
	}
	return version, nil
}

// patiently repeats f while other processes hold the file, evenly, for at most BusyWait.
func (s *Store) patiently(ctx context.Context, f func() error) error {
	begun := time.Now()
	for {
		err := f()
		if !isBusy(err) || time.Since(begun) >= s.cfg.BusyWait {
			return err
		}
		timer := time.NewTimer(busyPause + rand.N(busyPause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// busyPause is how long to wait at least before trying for the lock again. SQLite's own schedule grows to 100 ms and
// starves whoever waits longest.
const busyPause = 300 * time.Microsecond
