package main

import (
	"context"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// The system that had the incident, as its write-up describes it: conversations that are over are closed by a
// background job. It asks a model for the summary, writes it, and sets the state; the poller looks every minute for what
// is still in progress. No exception, no crash, no alarm.

// tick is how often the poller looks.
const tick = time.Minute

// conversation is a row.
type conversation struct {
	id    string
	state string
	ended bool // its ended_at is set; an old version of the program left it null in one row
}

const (
	inProgress = "in progress"
	closed     = "closed"
)

// conversations is the table: so many rows, one of which can never be closed.
func conversations() (rows []*conversation) {
	for _, id := range []string{"c-101", "c-102", "c-103", stuck, "c-105", "c-106"} {
		rows = append(rows, &conversation{id: id, state: inProgress, ended: id != stuck})
	}
	return rows
}

// stuck is the row that can never be closed.
const stuck = "c-104"

// close is UPDATE conversations SET state = 'closed' WHERE id = ? AND ended_at IS NOT NULL, and how many rows it set.
func (c *conversation) close() (rows int) {
	if c.state != inProgress || !c.ended {
		return 0
	}
	c.state = closed
	return 1
}

// summaries is the model: what it is asked, it bills.
type summaries struct {
	price pipeline.Money
	mu    sync.Mutex
	calls map[string]int
}

// A long conversation in, a summary out: five such calls are the write-up's dollar.
const (
	promptTokens  = 80_000
	summaryTokens = 4_000
)

func newSummaries() *summaries {
	return &summaries{calls: map[string]int{}, price: listPrice().Of(promptTokens, summaryTokens)}
}

func (s *summaries) ask(ctx context.Context, id string) error {
	s.mu.Lock()
	s.calls[id]++
	s.mu.Unlock()
	return sleep(ctx, 4*time.Second)
}

// naivePoller closes what is in progress, every tick; after is called after each.
func naivePoller(ctx context.Context, rows []*conversation, model *summaries, after func()) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			for _, row := range rows {
				if row.state == inProgress {
					naiveClose(ctx, row, model)
				}
			}
			after()
		}
	}
}

// naiveClose is the background job. That no row was updated is no error: somebody else may have closed it.
func naiveClose(ctx context.Context, row *conversation, model *summaries) {
	if err := model.ask(ctx, row.id); err != nil {
		return
	}
	_ = row.close()
}
