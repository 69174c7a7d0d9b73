package work

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
)

// journalPage is how large one item of the journal may be, in encoded bytes: far below the limit of an item, whatever a
// provider's errors look like.
const journalPage = 100 << 10

// journal gathers an attempt's tries until they are written, and their sums for the attempt's record.
type journal struct {
	task       pipeline.TaskID
	generation int64
	worker     string
	pages      int
	waiting    []pipeline.Try
	sent       int // tries of the page that was sent and may yet land: the same are sent again under its number

	sums pipeline.Record // of all tries so far
}

func (j *journal) add(t pipeline.Try) {
	j.waiting = append(j.waiting, t)
	j.sums.Add(t)
}

// page is how many of the tries that wait fit one item. A page that was sent before keeps what it has: a copy of it that
// lands late must not take the place of a fuller one.
func (j *journal) page() int {
	if j.sent > 0 {
		return j.sent
	}
	size := 0
	for n, t := range j.waiting {
		if size += len(pipeline.Encode(t)); size > journalPage && n > 0 {
			return n
		}
	}
	return len(j.waiting)
}

// flush writes the tries that wait. A page that could not be written waits for the next flush.
func (a *attempt) flush(ctx context.Context) error {
	for {
		a.mu.Lock()
		n := a.journal.page()
		page := pipeline.Journal{
			Task: a.journal.task, Generation: a.journal.generation, Worker: a.journal.worker,
			Page: a.journal.pages, Tries: a.journal.waiting[:n:n],
		}
		a.journal.sent = n
		a.mu.Unlock()
		if n == 0 {
			return nil
		}
		key := pipeline.JournalKey(page.Task, page.Generation, page.Page)
		if err := a.w.cfg.Store.PutItem(ctx, a.claim.Job, key, pipeline.Encode(page)); err != nil {
			return fmt.Errorf("write the journal of %s: %w", a.claim.Ref, err)
		}
		a.mu.Lock()
		a.journal.waiting, a.journal.sent = a.journal.waiting[n:], 0
		a.journal.pages++
		a.mu.Unlock()
	}
}
