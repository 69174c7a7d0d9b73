package dynamostore

import (
	"context"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

const bodyKey = "body"

func itemRow(job pipeline.JobID, key string, body []byte) item {
	row := keyOf(jobPartition(job), key)
	setBody(row, body)
	return row
}

func itemName(job pipeline.JobID, key string) string {
	return fmt.Sprintf("item %s of job %s", key, job)
}

// PutItem stores the item, whatever stands there.
func (s *Store) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	if err := fits("item "+key, len(key)+len(body)); err != nil {
		return err
	}
	_, err := s.client.PutItem(ctx, put(s.checkpoints, itemRow(job, key, body), nil))
	return named("put "+itemName(job, key), explain(ctx, err))
}

// PutItemOnce stores the item only if absent.
func (s *Store) PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) ([]byte, error) {
	if err := fits("item "+key, len(key)+len(body)); err != nil {
		return nil, err
	}
	stands, err := s.putOnce(ctx, s.checkpoints, itemRow(job, key, body))
	if err != nil {
		return nil, named("put "+itemName(job, key), err)
	}
	if stands != nil {
		body, err := bodyIn(stands)
		return body, named(itemName(job, key), err)
	}
	return append([]byte{}, body...), nil
}

// Item reads it.
func (s *Store) Item(ctx context.Context, job pipeline.JobID, key string) ([]byte, error) {
	row, err := s.get(ctx, s.checkpoints, keyOf(jobPartition(job), key))
	if err == nil && row == nil {
		err = pipeline.ErrNotFound
	}
	if err != nil {
		return nil, named(itemName(job, key), err)
	}
	body, err := bodyIn(row)
	return body, named(itemName(job, key), err)
}

// Items is one page of the items under a prefix, in order of their keys. Unpacked, a page of the table may be more than
// one of ours: then the rest of it is read again with the next.
func (s *Store) Items(ctx context.Context, job pipeline.JobID, prefix, cursor string) ([]pipeline.Item, string, error) {
	page, next, err := s.under(ctx, s.checkpoints, jobPartition(job), prefix, cursor, 0)
	if err != nil {
		return nil, "", named(fmt.Sprintf("items under %q of job %s", prefix, job), err)
	}
	var items []pipeline.Item
	size := 0
	for _, row := range page {
		key := textIn(row, SortKey)
		body, err := bodyIn(row)
		if err != nil {
			return nil, "", named(itemName(job, key), err)
		}
		if size += len(key) + len(body); size > pipeline.MaxPage && len(items) > 0 {
			return items, strings.TrimPrefix(items[len(items)-1].Key, prefix), nil
		}
		items = append(items, pipeline.Item{Key: key, Body: body})
	}
	return items, next, nil
}
