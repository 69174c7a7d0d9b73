package main

import (
	"context"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// tries counts the tries of each call.
type tries struct {
	mu sync.Mutex
	n  map[pipeline.ReplyKey]int
}

func newTries() *tries { return &tries{n: map[pipeline.ReplyKey]int{}} }

func (t *tries) next(key pipeline.ReplyKey) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[key]++
	return t.n[key]
}

// lag follows the feed of a job as a reader would, and knows when each group was first seen.
type lag struct {
	back *wiring.Backend
	job  pipeline.JobID
	seen []sighting
}

type sighting struct {
	group pipeline.FindingGroup
	at    pipeline.Instant
}

func newLag(back *wiring.Backend, job pipeline.JobID) *lag { return &lag{back: back, job: job} }

// readEvery is how often the reader asks for what is new.
const readEvery = 100 * time.Millisecond

func (l *lag) follow(ctx context.Context) {
	after := int64(0)
	for ctx.Err() == nil {
		groups, err := l.back.Store.Findings(ctx, l.job, after, 100)
		if err == nil {
			for _, g := range groups {
				l.seen = append(l.seen, sighting{g, pipeline.At(time.Now())})
				after = g.Seq
			}
		}
		_ = sleep(ctx, readEvery)
	}
}

// figures are how long after the end of its stage each group was seen.
func (l *lag) figures(ctx context.Context) ([]time.Duration, error) {
	var all []time.Duration
	for _, s := range l.seen {
		if s.group.Task.Kind() != pipeline.TaskWork {
			continue
		}
		item, err := l.back.Store.Item(ctx, l.job, pipeline.BodyKey(s.group.Task, s.group.Stage, s.group.Generation))
		if err != nil {
			return nil, err
		}
		body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
		if err != nil {
			return nil, err
		}
		all = append(all, s.at.Sub(body.EndedAt))
	}
	return all, nil
}
