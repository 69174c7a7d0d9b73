package work

import (
	"context"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// sizes knows how large jobs are. What needs all rows of a job is done for each delivery of a small one; for a large
// one at most every so often, because reading n rows for each of n deliveries would cost more than the work.
type sizes struct {
	store  Store
	clock  pipeline.Clock
	policy pipeline.Policy

	mu   sync.Mutex
	jobs map[pipeline.JobID]*size
}

// size is what was last counted of a job.
type size struct {
	small   bool          // its split is done, and it has no more tasks than one job may hold claims
	large   bool          // it has more
	held    int           // claims
	counted time.Duration // when, by the monotonic clock
	opened  time.Duration // when its finalize was last asked for; 0 = not yet
}

// sizesRoom bounds how many jobs are remembered.
const sizesRoom = 1000

func (s *sizes) of(job pipeline.JobID) *size {
	known := s.jobs[job]
	if known == nil {
		if s.jobs == nil || len(s.jobs) >= sizesRoom {
			s.jobs = map[pipeline.JobID]*size{}
		}
		known = &size{counted: -s.policy.JobPoll}
		s.jobs[job] = known
	}
	return known
}

// claims is how many claims are held on a job, as counted within the last JobPoll; 0 for a small one, which cannot
// hold too many.
func (s *sizes) claims(ctx context.Context, job pipeline.JobID) (int, error) {
	s.mu.Lock()
	known := *s.of(job)
	s.mu.Unlock()
	now := s.clock.Mono()
	if known.small {
		return 0, nil
	}
	if now-known.counted < s.policy.JobPoll {
		return known.held, nil
	}
	rows, err := pipeline.AllTasks(ctx, s.store, job)
	if err != nil {
		return 0, err
	}
	held, tasks, split := 0, 0, false
	for _, row := range rows {
		if row.ID.Kind() == pipeline.TaskSplit {
			split = row.Status.Ended()
			continue
		}
		tasks++
		if row.Status == pipeline.TaskClaimed {
			held++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known.held, known.counted, known.small = held, now, split && tasks <= s.policy.MaxJobClaims
	known.large, known.opened = tasks > s.policy.MaxJobClaims, s.of(job).opened
	*s.of(job) = known
	return held, nil
}

// mayOpen says whether to look if the job's finalize can be opened: always, but for a large job at most every JobPoll.
// What this passes over, the reaper sees to.
func (s *sizes) mayOpen(job pipeline.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, now := s.of(job), s.clock.Mono()
	if known.large && known.opened != 0 && now-known.opened < s.policy.JobPoll {
		return false
	}
	known.opened = max(1, now)
	return true
}
