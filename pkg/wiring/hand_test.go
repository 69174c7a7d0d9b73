package wiring_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// hand is a handler that does to each item what the test says, and remembers what it was given.
type hand struct {
	w     *world
	takes time.Duration
	does  map[string]func(ctx context.Context, item pipeline.WorkItem) error // by the item's text
	costs pipeline.Money                                                     // what each run says that it cost

	mu   sync.Mutex
	runs []pipeline.WorkItem
	over int // runs that have ended
}

func newHand(w *world) *hand {
	return &hand{w: w, takes: 100 * time.Millisecond, does: map[string]func(context.Context, pipeline.WorkItem) error{}}
}

func (h *hand) work(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
	h.mu.Lock()
	h.runs = append(h.runs, item)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.over++
		h.mu.Unlock()
	}()
	if err := h.w.clock.Sleep(ctx, h.takes); err != nil {
		return pipeline.Output{}, err
	}
	h.mu.Lock()
	does := h.does[item.Text]
	h.mu.Unlock()
	if does != nil {
		if err := does(ctx, item); err != nil {
			return pipeline.Output{Cost: h.costs}, err
		}
	}
	return pipeline.Output{Text: "done " + item.Text, Cost: h.costs}, nil
}

// count is how many runs have begun, and how many of them have ended.
func (h *hand) count() (begun, over int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs), h.over
}

// of is how often an item was run.
func (h *hand) of(text string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range h.runs {
		if run.Text == text {
			n++
		}
	}
	return n
}

func (h *hand) in(cfg *wiring.Config) {
	cfg.Model, cfg.Functions = nil, map[string]pipeline.Function{handID: h.work}
}

// list submits lines for the hand.
func (w *world) list(lines string, edits ...func(*pipeline.Definition)) pipeline.Job {
	d := pipeline.LinesOf(handID)
	for _, edit := range edits {
		edit(&d)
	}
	return w.submit(lines, func(sub *submit.Submission) { sub.Name, sub.Definition = "items.txt", d })
}

// story is how an item's task ended: its row, and the kinds of its counted and of its uncounted attempts, in order.
func (w *world) story(id pipeline.JobID, n int) (row pipeline.Task, counted, free []pipeline.Kind) {
	w.Helper()
	ref := pipeline.Ref{Job: id, ID: pipeline.WorkTask(n)}
	row, err := w.back.Store.Task(w.ctx, ref)
	w.must(err)
	h, err := pipeline.ReadHistory(w.ctx, w.back.Store, ref)
	w.must(err)
	for _, r := range row.Counting(h.Records) {
		if r.Outcome == pipeline.Succeeded {
			continue
		}
		if r.Failure.None() || r.Failure.Cause == "" {
			w.Errorf("%s attempt %d ended %s without a reason", ref, r.Attempt, r.Outcome)
		}
		if r.Counted {
			counted = append(counted, r.Failure.Kind)
		} else {
			free = append(free, r.Failure.Kind)
		}
	}
	return row, counted, free
}

// answer is the stored answer of an item.
func (w *world) answer(id pipeline.JobID, n int) pipeline.Reply {
	w.Helper()
	row, _, _ := w.story(id, n)
	item, err := w.back.Store.Item(w.ctx, id, pipeline.BodyKey(row.ID, 1, row.Body(1)))
	w.must(err)
	body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
	w.must(err)
	replies, err := pipeline.ReadReplies(w.ctx, w.back.Store, w.back.Blobs, w.clock, []pipeline.ReplyKey{body.Cells[0].Key})
	w.must(err)
	return replies[body.Cells[0].Key]
}

// abandoned checks that an item was given up after three attempts, each with that reason, and was run so often.
func (w *world) abandoned(h *hand, id pipeline.JobID, n int, text string, kind pipeline.Kind, runs int) {
	w.Helper()
	row, counted, free := w.story(id, n)
	want := []pipeline.Kind{kind, kind, kind}
	if row.Status != pipeline.TaskAbandoned || row.Attempts != 3 || !row.Buried || !slices.Equal(counted, want) || len(free) > 0 {
		w.Errorf("%q is %s after %d attempts, %v counted, %v not, buried %v; want abandoned after %v", text, row.Status, row.Attempts, counted, free, row.Buried, want)
	}
	if got := h.of(text); got != runs {
		w.Errorf("%q was run %d times, want %d", text, got, runs)
	}
}

func fails(err error) func(context.Context, pipeline.WorkItem) error {
	return func(context.Context, pipeline.WorkItem) error { return err }
}
