package memory

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
)

// Forget removes an ended job for good, with those replies and blobs.
func (s *Store) Forget(ctx context.Context, job pipeline.Job, replies []pipeline.ReplyKey, blobs []string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if stands, known := s.jobs[job.ID]; known && !stands.Status.Ended() {
		return fmt.Errorf("forget job %s: it is %s", job.ID, stands.Status)
	}
	for id, row := range s.tasks[job.ID] {
		if !row.Status.Ended() {
			return fmt.Errorf("forget job %s: %s is %s", job.ID, id, row.Status)
		}
	}
	for id := range s.tasks[job.ID] {
		ref := pipeline.Ref{Job: job.ID, ID: id}
		delete(s.listed[ref.DueShard()], ref)
	}
	for _, key := range replies {
		delete(s.replies, key)
	}
	for _, key := range blobs {
		delete(s.blobs, key)
	}
	delete(s.tasks, job.ID)
	delete(s.items, job.ID)
	delete(s.feeds, job.ID)
	delete(s.budgets, job.ID)
	delete(s.jobs, job.ID)
	return nil
}
