package memory

import (
	"context"
	"fmt"
	"math"

	"holdfast/pkg/pipeline"
)

// Submit puts job and split together, each only if absent.
func (s *Store) Submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (pipeline.Job, bool, error) {
	if err := fits("job "+string(job.ID), encoded(job)); err != nil {
		return pipeline.Job{}, false, err
	}
	if err := fits("task "+split.Ref.String(), encoded(split)); err != nil {
		return pipeline.Job{}, false, err
	}
	if err := s.enter(ctx); err != nil {
		return pipeline.Job{}, false, err
	}
	defer s.mu.Unlock()
	stands, exists := s.jobs[job.ID]
	if !exists {
		stands = job
		s.jobs[job.ID] = job
	}
	if _, exists := s.row(split.Ref); !exists {
		if err := s.put(split); err != nil {
			return pipeline.Job{}, false, err
		}
	}
	return stands, !exists, nil
}

// Job reads the row.
func (s *Store) Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Job{}, err
	}
	defer s.mu.Unlock()
	job, exists := s.jobs[id]
	if !exists {
		return pipeline.Job{}, fmt.Errorf("job %s: %w", id, pipeline.ErrNotFound)
	}
	return job, nil
}

// SetJob replaces the row if it is still as seen.
func (s *Store) SetJob(ctx context.Context, seen, next pipeline.Job) (pipeline.Job, error) {
	if err := fits("job "+string(next.ID), encoded(next)); err != nil {
		return pipeline.Job{}, err
	}
	if err := s.enter(ctx); err != nil {
		return pipeline.Job{}, err
	}
	defer s.mu.Unlock()
	stands, exists := s.jobs[seen.ID]
	switch {
	case !exists:
		return pipeline.Job{}, fmt.Errorf("set job %s: %w", seen.ID, pipeline.ErrNotFound)
	case stands == next: // our own write, its answer was lost
		return stands, nil
	case !sameJob(stands, seen):
		return stands, fmt.Errorf("set job %s: it is %s in epoch %d: %w", seen.ID, stands.Status, stands.Epoch, pipeline.ErrFenced)
	}
	s.jobs[seen.ID] = next
	return next, nil
}

func sameJob(stands, seen pipeline.Job) bool {
	return stands.Epoch == seen.Epoch &&
		stands.Status == seen.Status &&
		stands.PausedAt == seen.PausedAt &&
		stands.Deadline == seen.Deadline
}

// Jobs lists a tenant's jobs, newest first.
func (s *Store) Jobs(ctx context.Context, tenant, cursor string, limit int) ([]pipeline.Job, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	newest := func(j pipeline.Job) string { return fmt.Sprintf("%020d %s", math.MaxInt64-int64(j.CreatedAt), j.ID) }
	mine := map[pipeline.JobID]pipeline.Job{}
	for id, job := range s.jobs {
		if job.Tenant == tenant {
			mine[id] = job
		}
	}
	jobs, next := turn(sortedBy(mine, newest), cursor, s.PageBytes, newest, sizeOf[pipeline.Job])
	if limit > 0 && len(jobs) > limit {
		jobs = jobs[:limit]
		next = newest(jobs[limit-1])
	}
	return jobs, next, nil
}

// OpenJobs is one page of the jobs that have not ended.
func (s *Store) OpenJobs(ctx context.Context, cursor string) ([]pipeline.Job, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	open := map[pipeline.JobID]pipeline.Job{}
	for id, job := range s.jobs {
		if !job.Status.Ended() {
			open[id] = job
		}
	}
	id := func(j pipeline.Job) string { return string(j.ID) }
	jobs, next := turn(sortedBy(open, id), cursor, s.PageBytes, id, sizeOf[pipeline.Job])
	return jobs, next, nil
}

func sizeOf[T any](v T) int { return encoded(v) }
