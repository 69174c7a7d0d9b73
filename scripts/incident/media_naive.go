package main

import (
	"context"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// The system that had the incident, as its write-up describes it: a hard timeout, so that no job hangs for ever; a
// reaper, so that none is lost with its worker; a requeue, so that a passing fault loses nothing. All three are right.

// decoder decodes a file; ctx ends at the hard timeout, which is SIGKILL.
type decoder func(ctx context.Context, name string) error

type mediaStatus string

const (
	mediaPending    mediaStatus = "pending"
	mediaProcessing mediaStatus = "processing"
	mediaCompleted  mediaStatus = "completed"
)

// mediaRow is a file in the naive system's table.
type mediaRow struct {
	name   string
	status mediaStatus
	alive  bool // the process that works on it lives
	queued bool
}

// naiveMedia is the naive system.
type naiveMedia struct {
	decode decoder
	hard   time.Duration // the timeout
	scan   time.Duration // how often the reaper and the requeue look

	mu       sync.Mutex
	rows     []*mediaRow
	queue    chan *mediaRow
	failures map[string]int // by file; the metric on the wall is their sum
}

func newNaiveMedia(decode decoder, hard, scan time.Duration) *naiveMedia {
	return &naiveMedia{decode: decode, hard: hard, scan: scan, queue: make(chan *mediaRow, 100_000), failures: map[string]int{}}
}

// add puts files into the table; the requeue finds them.
func (m *naiveMedia) add(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		m.rows = append(m.rows, &mediaRow{name: name, status: mediaPending})
	}
}

// run works with so many slots until ctx ends.
func (m *naiveMedia) run(ctx context.Context, slots int) {
	var group pipeline.Group
	for range slots {
		group.Go(func() { m.slot(ctx) })
	}
	ticker := time.NewTicker(m.scan)
	defer ticker.Stop()
	for ctx.Err() == nil {
		m.reap()
		m.requeue()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	group.Wait()
}

// slot is a worker process; after a SIGKILL its successor takes the next file.
func (m *naiveMedia) slot(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case row := <-m.queue:
			m.process(ctx, row)
		}
	}
}

func (m *naiveMedia) process(ctx context.Context, row *mediaRow) {
	if !m.begin(row) {
		return
	}
	child, stop := context.WithTimeout(ctx, m.hard)
	defer stop()
	err := m.decode(child, row.name)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		row.status = mediaCompleted
	case child.Err() != nil: // SIGKILL: nothing of the process runs any more, so nothing writes a status or a count
		m.failures[row.name]++
	default:
		row.status = mediaPending
		m.failures[row.name]++
	}
	row.alive = false
}

func (m *naiveMedia) begin(row *mediaRow) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	row.queued = false
	if row.status != mediaPending {
		return false
	}
	row.status, row.alive = mediaProcessing, true
	return true
}

// reap returns rows whose process is gone: they would never finish.
func (m *naiveMedia) reap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.rows {
		if row.status == mediaProcessing && !row.alive {
			row.status = mediaPending
		}
	}
}

// requeue puts what is pending back on the queue.
func (m *naiveMedia) requeue() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.rows {
		if row.status == mediaPending && !row.queued {
			row.queued = true
			m.queue <- row
		}
	}
}

// standing is how many rows are completed, and the failures of each file.
func (m *naiveMedia) standing() (completed int, failures map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	failures = map[string]int{}
	for name, n := range m.failures {
		failures[name] = n
	}
	for _, row := range m.rows {
		if row.status == mediaCompleted {
			completed++
		}
	}
	return completed, failures
}
