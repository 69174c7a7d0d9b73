package wiring

import (
	"context"
	"sync"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/work"
)

// mine knows for which jobs this process has a model or handler.
type mine struct {
	s        *System
	handlers work.ByModel

	mu   sync.Mutex
	jobs map[pipeline.JobID]bool
}

// minesRoom is how many jobs are remembered.
const minesRoom = 10_000

// chosen is the queue of chunks as this process receives it: without those that it cannot work on. They would be claimed
// and put off again and again, and wait for those who can.
func (s *System) chosen(q pipeline.Queue, handlers work.ByModel) pipeline.Queue {
	choosy, can := q.(pipeline.Choosy)
	if !can {
		return q // what arrives and is another's is deferred
	}
	m := &mine{s: s, handlers: handlers, jobs: map[pipeline.JobID]bool{}}
	return choosy.For(m.is)
}

// is says whether the job's chunks may be received. A job that cannot be read is anybody's: its claim decides. What a
// job needs never changes, so each is looked up, and told if it is another's, once.
func (m *mine) is(ctx context.Context, id pipeline.JobID) bool {
	m.mu.Lock()
	is, known := m.jobs[id]
	m.mu.Unlock()
	if known {
		return is
	}
	job, err := m.s.Backend.Store.Job(ctx, id)
	if err != nil {
		return true
	}
	is = m.handlers[job.Model] != nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.jobs) >= minesRoom {
		clear(m.jobs)
	}
	if _, known := m.jobs[id]; !known && !is {
		m.s.cfg.Log.Info("a job is left to others: this worker cannot work on it",
			"job", id, "needs", job.Model, "has", m.handlers.Names(), "start", pipeline.WorkerFor(job.Model))
	}
	m.jobs[id] = is
	return is
}
