package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// PutItem stores the item, whatever was there.
func (s *Store) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	if err := weigh(key, string(body)); err != nil {
		return itemError("put", job, key, err)
	}
	return itemError("put", job, key, s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO items (job, key, body) VALUES (?, ?, ?)
ON CONFLICT (job, key) DO UPDATE SET body = excluded.body`, job, key, string(body))
		return err
	}))
}

// PutItemOnce stores the item only if absent and returns the body that stands.
func (s *Store) PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) (stands []byte, err error) {
	if err := weigh(key, string(body)); err != nil {
		return nil, itemError("put", job, key, err)
	}
	err = s.write(ctx, func(tx *tx) (err error) {
		stands, err = putOnce(tx, body,
			`INSERT INTO items (job, key, body) VALUES (?, ?, ?) ON CONFLICT (job, key) DO NOTHING`, []any{job, key, string(body)},
			`SELECT body FROM items WHERE job = ? AND key = ?`, []any{job, key})
		return err
	})
	return stands, itemError("put", job, key, err)
}

// putOnce inserts a body unless there is one, and returns the one that stands.
func putOnce(tx *tx, body []byte, insert string, values []any, read string, key []any) ([]byte, error) {
	put, err := tx.exec(insert, values...)
	if err != nil || put == 1 {
		return body, err
	}
	var stands []byte
	err = tx.row(read, key...).Scan(&stands)
	return stands, err
}

// Item is a consistent read.
func (s *Store) Item(ctx context.Context, job pipeline.JobID, key string) (body []byte, err error) {
	err = s.one(ctx, func(row scanner) error { return row.Scan(&body) },
		`SELECT body FROM items WHERE job = ? AND key = ?`, job, key)
	return body, itemError("read", job, key, err)
}

// Items is one page of the items whose key begins with prefix, in order.
func (s *Store) Items(ctx context.Context, job pipeline.JobID, prefix, cursor string) (items []pipeline.Item, next string, err error) {
	var size page
	err = s.query(ctx, func(row scanner) error {
		var item pipeline.Item
		if err := row.Scan(&item.Key, &item.Body); err != nil {
			return err
		}
		if !strings.HasPrefix(item.Key, prefix) {
			return errEnough
		}
		if !size.takes(len(item.Key) + len(item.Body)) {
			next = items[len(items)-1].Key
			return errEnough
		}
		items = append(items, item)
		return nil
	}, `SELECT key, body FROM items
WHERE job = ?
	AND key >= ?
	AND key > ?
ORDER BY key`, job, prefix, cursor)
	if err != nil {
		return nil, "", itemError("list", job, prefix, err)
	}
	return items, next, nil
}

func itemError(verb string, job pipeline.JobID, key string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = pipeline.ErrNotFound
	}
	return fmt.Errorf("%s item %s %s: %w", verb, job, key, err)
}
