package memory

import (
	"bytes"
	"maps"
	"slices"

	"holdfast/pkg/pipeline"
)

// Snapshot is the table of a store at one moment: jobs, rows, items, replies, findings, budgets, limits. Blobs are
// elsewhere, as they are on AWS, and not in it.
type Snapshot struct{ of *Store }

// Snapshot copies the table. For tests: what a backup is.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Snapshot{s.copied()}
}

// Restore puts a table back as it was, blobs aside. The snapshot may be used again.
func (s *Store) Restore(from *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := from.of.copied()
	s.jobs, s.tasks, s.listed, s.items, s.replies = old.jobs, old.tasks, old.listed, old.items, old.replies
	s.feeds, s.budgets, s.lines, s.cooldowns = old.feeds, old.budgets, old.lines, old.cooldowns
}

// copied is the table, sharing nothing that changes.
func (s *Store) copied() *Store {
	c := New()
	c.jobs, c.replies, c.lines, c.cooldowns = maps.Clone(s.jobs), maps.Clone(s.replies), maps.Clone(s.lines), maps.Clone(s.cooldowns)
	for job, rows := range s.tasks {
		c.tasks[job] = map[pipeline.TaskID]pipeline.Task{}
		for id, row := range rows {
			row.Bodies = slices.Clone(row.Bodies)
			c.tasks[job][id] = row
		}
	}
	for shard := range s.listed {
		c.listed[shard] = maps.Clone(s.listed[shard])
	}
	for job, items := range s.items {
		c.items[job] = map[string][]byte{}
		for key, body := range items {
			c.items[job][key] = bytes.Clone(body)
		}
	}
	for job, feed := range s.feeds {
		c.feeds[job] = slices.Clone(feed)
	}
	for job, b := range s.budgets {
		clone := *b
		clone.raised, clone.open = maps.Clone(b.raised), maps.Clone(b.open)
		c.budgets[job] = &clone
	}
	return c
}
