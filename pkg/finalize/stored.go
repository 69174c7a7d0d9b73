package finalize

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// stored is what the attempts of a job's tasks left, read once: page by page, where a request for each body and each
// task's history would be hundreds. All tasks have ended by then, so what they left stays as it is.
type stored struct{ items []pipeline.Item } // in order of their keys

// read reads all items of the job's tasks.
func (f *Finalizer) read(ctx context.Context, a pipeline.Attempt, job pipeline.JobID) (*stored, error) {
	s := &stored{}
	for cursor := ""; ; {
		page, next, err := f.cfg.Store.Items(ctx, job, pipeline.TasksPrefix, cursor)
		if err != nil {
			return nil, fmt.Errorf("read what the tasks of job %s left: %w", job, err)
		}
		s.items = append(s.items, page...)
		a.Progress()
		if next == "" {
			return s, nil
		}
		cursor = next
	}
}

// from is where the items from that key on begin.
func (s *stored) from(key string) int {
	n, _ := slices.BinarySearchFunc(s.items, key, func(item pipeline.Item, key string) int { return strings.Compare(item.Key, key) })
	return n
}

// Item is one of them.
func (s *stored) Item(_ context.Context, job pipeline.JobID, key string) ([]byte, error) {
	if n := s.from(key); n < len(s.items) && s.items[n].Key == key {
		return s.items[n].Body, nil
	}
	return nil, fmt.Errorf("item %s of job %s: %w", key, job, pipeline.ErrNotFound)
}

// Items are those under a prefix, in one page.
func (s *stored) Items(_ context.Context, _ pipeline.JobID, prefix, _ string) ([]pipeline.Item, string, error) {
	begin := s.from(prefix)
	end := begin
	for end < len(s.items) && strings.HasPrefix(s.items[end].Key, prefix) {
		end++
	}
	return s.items[begin:end], "", nil
}
