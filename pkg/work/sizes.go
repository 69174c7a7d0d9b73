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
	took    time.Duration // to read its rows, the last time
}

// readShare is which part of a worker's time may go into reading all rows of one job: one in so many.
const readShare = 20

// every is how often all rows of a job may be read: a job of many thousand rows takes long to read, and less often.
func (s *sizes) every(known *size) time.Duration {
	return max(s.policy.JobPoll, readShare*known.took)
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

// claims is how many claims are held on a job, as counted lately: within the last JobPoll, or longer ago if it takes
// long to count; 0 for a small one, which cannot hold too many.
func (s *sizes) claims(ctx context.Context, job pipeline.JobID) (int, error) {
	now := s.clock.Mono()
	s.mu.Lock()
	known := s.of(job)
	before := *known
	counts := !before.small && now-before.counted >= s.every(known)
	if counts && before.took > 0 {
		known.counted = now // one counts, and the others go by what was counted before
	}
	s.mu.Unlock()
	switch {
	case before.small:
		return 0, nil
	case !counts:
		return before.held, nil
	}
	return s.count(ctx, job, before.counted)
}

// count reads the job's rows.
func (s *sizes) count(ctx context.Context, job pipeline.JobID, before time.Duration) (int, error) {
	now := s.clock.Mono()
	rows, err := pipeline.AllTasks(ctx, s.store, job)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.of(job).counted = before
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
	known := s.of(job)
	known.held, known.counted, known.small = held, now, split && tasks <= s.policy.MaxJobClaims
	known.large, known.took = tasks > s.policy.MaxJobClaims, s.clock.Mono()-now
	return held, nil
}

// mayOpen says whether to look if the job's finalize can be opened: always, but for a large job only now and then.
// What this passes over, the reaper sees to.
func (s *sizes) mayOpen(job pipeline.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, now := s.of(job), s.clock.Mono()
	if known.large && known.opened != 0 && now-known.opened < s.every(known) {
		return false
	}
	known.opened = max(1, now)
	return true
}
