package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
)

// tx is the writer's open transaction, and the statements prepared on its connection.
type tx struct {
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	failed error // the first statement that failed: the transaction is not to be committed
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (changed int64, err error) {
	stmt, err := t.prepare(query)
	if err != nil {
		return 0, t.fail(err)
	}
	result, err := stmt.Exec(args...)
	if err != nil {
		return 0, t.fail(err)
	}
	changed, err = result.RowsAffected()
	return changed, t.fail(err)
}

// row is the one row of a query or of what a write returns.
func (t *tx) row(query string, args ...any) row {
	stmt, err := t.prepare(query)
	if err != nil {
		return row{tx: t, err: err}
	}
	return row{tx: t, row: stmt.QueryRow(args...)}
}

// rows calls scan for each row of a query.
func (t *tx) rows(scan func(scanner) error, query string, args ...any) error {
	stmt, err := t.prepare(query)
	if err != nil {
		return t.fail(err)
	}
	rows, err := stmt.Query(args...)
	if err != nil {
		return t.fail(err)
	}
	return t.fail(each(rows, scan))
}

func (t *tx) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := t.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := t.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = stmt
	return stmt, nil
}

func (t *tx) fail(err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
	}
	return err
}

func (t *tx) close() {
	for _, stmt := range t.stmts {
		_ = stmt.Close()
	}
	_ = t.conn.Close()
}

// row is a row that may fail: in a transaction every error but "no such row" spoils it.
type row struct {
	tx  *tx
	row *sql.Row
	err error
}

// Scan reads the row. sql.ErrNoRows is an answer and no failure.
func (r row) Scan(dest ...any) error {
	if r.err != nil {
		return r.tx.fail(r.err)
	}
	err := r.row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return r.tx.fail(err)
}

// scanner is a row that can be read: *sql.Row, *sql.Rows or a row of a tx.
type scanner interface{ Scan(dest ...any) error }

// errEnough ends the reading of rows without an error.
var errEnough = errors.New("enough rows")

// each calls scan for each row and closes them. scan may return errEnough.
func each(rows *sql.Rows, scan func(scanner) error) error {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// query reads rows that are committed, on a connection of the readers.
func (s *Store) query(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return s.explain(ctx, err)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return s.explain(ctx, err)
	}
	return s.explain(ctx, each(rows, scan))
}

// one reads one row; pipeline.ErrNotFound if there is none.
func (s *Store) one(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return s.explain(ctx, err)
	}
	return s.explain(ctx, scan(stmt.QueryRowContext(ctx, args...)))
}

func (s *Store) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := s.stmts.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := s.reads.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, found := s.stmts.LoadOrStore(query, stmt); found {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}
