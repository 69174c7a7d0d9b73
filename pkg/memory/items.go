package memory

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// PutItem stores the item, whatever stands there.
func (s *Store) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	if err := fits("item "+key, len(key)+len(body)); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.putItem(job, key, body)
	return nil
}

func (s *Store) putItem(job pipeline.JobID, key string, body []byte) {
	if s.items[job] == nil {
		s.items[job] = map[string][]byte{}
	}
	s.items[job][key] = bytes.Clone(body)
}

// PutItemOnce stores the item only if absent.
func (s *Store) PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) ([]byte, error) {
	if err := fits("item "+key, len(key)+len(body)); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if stands, exists := s.items[job][key]; exists {
		return bytes.Clone(stands), nil
	}
	s.putItem(job, key, body)
	return bytes.Clone(body), nil
}

// Item reads it.
func (s *Store) Item(ctx context.Context, job pipeline.JobID, key string) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	body, exists := s.items[job][key]
	if !exists {
		return nil, fmt.Errorf("item %s of job %s: %w", key, job, pipeline.ErrNotFound)
	}
	return bytes.Clone(body), nil
}

// Items is one page of the items under a prefix, in order of their keys.
func (s *Store) Items(ctx context.Context, job pipeline.JobID, prefix, cursor string) ([]pipeline.Item, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	under := map[string]pipeline.Item{}
	for key, body := range s.items[job] {
		if strings.HasPrefix(key, prefix) {
			under[key] = pipeline.Item{Key: key, Body: body}
		}
	}
	key := func(i pipeline.Item) string { return i.Key }
	items, next := turn(sortedBy(under, key), cursor, s.PageBytes, key, func(i pipeline.Item) int { return len(i.Key) + len(i.Body) })
	for i := range items {
		items[i].Body = bytes.Clone(items[i].Body)
	}
	return items, next, nil
}

// PutReply stores a reply only if absent.
func (s *Store) PutReply(ctx context.Context, r pipeline.Reply) (pipeline.Reply, error) {
	if err := fits("reply "+string(r.Key), encoded(r)); err != nil {
		return pipeline.Reply{}, err
	}
	if err := s.enter(ctx); err != nil {
		return pipeline.Reply{}, err
	}
	defer s.mu.Unlock()
	if stands, exists := s.replies[r.Key]; exists {
		return stands, nil
	}
	s.replies[r.Key] = r
	return r, nil
}

// Replies reads a batch.
func (s *Store) Replies(ctx context.Context, keys []pipeline.ReplyKey) (map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey, error) {
	if len(keys) > pipeline.MaxRead {
		return nil, nil, fmt.Errorf("read %d replies: a batch has at most %d", len(keys), pipeline.MaxRead)
	}
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	found := map[pipeline.ReplyKey]pipeline.Reply{}
	var unprocessed []pipeline.ReplyKey
	for i, key := range keys {
		if s.Unprocessed != nil && s.Unprocessed("Replies", i) {
			unprocessed = append(unprocessed, key)
			continue
		}
		if reply, exists := s.replies[key]; exists {
			found[key] = reply
		}
	}
	return found, unprocessed, nil
}

// PutBlob stores the body whole.
func (s *Store) PutBlob(ctx context.Context, key string, body []byte) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.blobs[key] = bytes.Clone(body)
	return nil
}

// Blob reads it.
func (s *Store) Blob(ctx context.Context, key string) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	body, exists := s.blobs[key]
	if !exists {
		return nil, fmt.Errorf("blob %s: %w", key, pipeline.ErrNotFound)
	}
	return bytes.Clone(body), nil
}
