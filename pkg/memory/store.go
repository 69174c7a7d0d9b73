package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"holdfast/pkg/pipeline"
)

// Store is a [pipeline.Store] and [pipeline.Blobs] that lives as long as the process. Its methods may be called from
// any goroutine; each is one step that no other sees half done.
type Store struct {
	// PageBytes is the size of a page; [pipeline.MaxPage] unless a test wants more pages. Set it before use.
	PageBytes int
	// Unprocessed, if set, makes entries of a batch ("PutTasks", "Replies") come back untried. Set it before use.
	Unprocessed func(op string, index int) bool

	mu        sync.Mutex
	jobs      map[pipeline.JobID]pipeline.Job
	tasks     map[pipeline.JobID]map[pipeline.TaskID]pipeline.Task
	listed    [pipeline.DueShards]map[pipeline.Ref]bool
	items     map[pipeline.JobID]map[string][]byte
	replies   map[pipeline.ReplyKey]pipeline.Reply
	feeds     map[pipeline.JobID][]feedEntry
	budgets   map[pipeline.JobID]*budget
	lines     map[string]line
	cooldowns map[string]pipeline.Cooldown
	blobs     map[string][]byte
}

var (
	_ pipeline.Store = (*Store)(nil)
	_ pipeline.Blobs = (*Store)(nil)
)

// New is an empty store.
func New() *Store {
	s := &Store{
		PageBytes: pipeline.MaxPage,
		jobs:      map[pipeline.JobID]pipeline.Job{},
		tasks:     map[pipeline.JobID]map[pipeline.TaskID]pipeline.Task{},
		items:     map[pipeline.JobID]map[string][]byte{},
		replies:   map[pipeline.ReplyKey]pipeline.Reply{},
		feeds:     map[pipeline.JobID][]feedEntry{},
		budgets:   map[pipeline.JobID]*budget{},
		lines:     map[string]line{},
		cooldowns: map[string]pipeline.Cooldown{},
		blobs:     map[string][]byte{},
	}
	for shard := range s.listed {
		s.listed[shard] = map[pipeline.Ref]bool{}
	}
	return s
}

// PutRaw puts a row with only these columns, by their JSON names, whatever stands there: what an older version or a
// person may have left. For tests.
func (s *Store) PutRaw(ref pipeline.Ref, columns map[string]any) error {
	row, err := pipeline.Decode[pipeline.Task](pipeline.Encode(columns), "row")
	if err != nil {
		return err
	}
	row.Ref = ref
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(row)
}

// DeleteTask removes a row, as nothing in Holdfast ever does. For tests.
func (s *Store) DeleteTask(ref pipeline.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks[ref.Job], ref.ID)
	delete(s.listed[ref.DueShard()], ref)
}

// enter takes the lock, unless the caller has given up.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	return nil
}

// fits refuses what no item may hold.
func fits(what string, bytes int) error {
	if bytes > pipeline.MaxItem {
		return fmt.Errorf("%s has %d bytes, an item at most %d: %w", what, bytes, pipeline.MaxItem, pipeline.ErrTooLarge)
	}
	return nil
}

func encoded(v any) int {
	body, err := json.Marshal(v)
	if err != nil {
		return pipeline.MaxItem + 1 // what cannot be encoded cannot be stored
	}
	return len(body)
}

// cut is how many of the rows make one page: as many as fit, but at least one.
func cut[T any](rows []T, bytes int, size func(T) int) int {
	sum := 0
	for n, row := range rows {
		sum += size(row)
		if n > 0 && sum > bytes {
			return n
		}
	}
	return len(rows)
}

// turn is one page of sorted rows, those after the cursor; key is the cursor of a row.
func turn[T any](rows []T, cursor string, bytes int, key func(T) string, size func(T) int) ([]T, string) {
	if cursor != "" {
		after, found := slices.BinarySearchFunc(rows, cursor, func(row T, c string) int { return cmp.Compare(key(row), c) })
		if found {
			after++
		}
		rows = rows[after:]
	}
	n := cut(rows, bytes, size)
	if n == len(rows) {
		return rows, ""
	}
	return rows[:n], key(rows[n-1])
}

func sortedBy[K comparable, T any](rows map[K]T, key func(T) string) []T {
	return slices.SortedFunc(maps.Values(rows), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
