package memory

import (
	"context"

	"holdfast/pkg/pipeline"
)

// feedEntry is a group as it was put: encoded, so that no caller can change it.
type feedEntry struct {
	task       pipeline.TaskID
	stage      int
	generation int64
	body       []byte
}

// PutFindings appends a group once. Its number is its place in the feed, from 1.
func (s *Store) PutFindings(ctx context.Context, g pipeline.FindingGroup) error {
	if err := fits("findings of "+string(g.Task), encoded(g)); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	feed := s.feeds[g.Job]
	for _, entry := range feed {
		if entry.task == g.Task &&
			entry.stage == g.Stage &&
			entry.generation == g.Generation {
			return nil
		}
	}
	g.Seq = int64(len(feed)) + 1
	s.feeds[g.Job] = append(feed, feedEntry{g.Task, g.Stage, g.Generation, pipeline.Encode(g)})
	return nil
}

// Findings is the groups after a cursor.
func (s *Store) Findings(ctx context.Context, job pipeline.JobID, after int64, limit int) ([]pipeline.FindingGroup, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	feed := s.feeds[job]
	feed = feed[min(max(0, after), int64(len(feed))):]
	if limit > 0 && len(feed) > limit {
		feed = feed[:limit]
	}
	feed = feed[:cut(feed, s.PageBytes, func(e feedEntry) int { return len(e.body) })]
	var groups []pipeline.FindingGroup
	for _, entry := range feed {
		group, err := pipeline.Decode[pipeline.FindingGroup](entry.body, "finding group")
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	return groups, nil
}
