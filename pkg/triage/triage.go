// Package triage answers why: what happened to a task, attempt by attempt and try by try, what a job is missing, what
// lies in the dead-letter queues; and it redrives, when a person says so.
//
// It may decide: what a redrive gives back and what that may cost. It may not: redrive by itself, end anything, or
// change what it looks at.
package triage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/pkg/pipeline"
)

// Store is what triage asks of the store.
type Store interface {
	pipeline.Jobs
	pipeline.Tasks
	pipeline.Items
	pipeline.Budgets
	pipeline.Breaker
}

// Config is all that triage needs.
type Config struct {
	Store  Store
	Blobs  pipeline.Blobs
	Queues pipeline.Queues
	Clock  pipeline.Clock
	Policy pipeline.Policy
}

// Triage looks, and redrives.
type Triage struct{ cfg Config }

// New is a triage.
func New(cfg Config) *Triage { return &Triage{cfg: cfg} }

// TaskStory is what happened to one task.
type TaskStory struct {
	Job          pipeline.Job           `json:"job"`
	Task         pipeline.Task          `json:"task"`
	Chunk        *pipeline.Chunk        `json:"chunk,omitempty"`
	Item         string                 `json:"item,omitempty"`         // the line that the chunk is, where chunks are lines
	Line         int                    `json:"line,omitempty"`         // its number in the file, from 1: blank ones are no items, and count
	Attempts     []AttemptStory         `json:"attempts"`               // tier two, oldest first
	Closed       []pipeline.Record      `json:"closed,omitempty"`       // endings of the row that were nobody's attempt
	Missing      []pipeline.Cell        `json:"missing,omitempty"`      // cells of accepted stages without an answer
	Cancellation *pipeline.Cancellation `json:"cancellation,omitempty"` // where it stopped, if it was cancelled
	Sums         pipeline.Record        `json:"sums"`                   // of all attempts that count
}

// AttemptStory is one claim's work.
type AttemptStory struct {
	Generation int64             `json:"generation"`
	Worker     string            `json:"worker"`
	Record     *pipeline.Record  `json:"record,omitempty"`  // the one that counts; absent while the attempt runs
	Others     []pipeline.Record `json:"others,omitempty"`  // of another ender, which do not count
	Tries      []pipeline.Try    `json:"tries"`             // tier one, in the order of their sending
	Unnamed    int               `json:"unnamed,omitempty"` // tries known by number only
	Running    bool              `json:"running,omitempty"`
}

// Why is what happened to a task.
func (t *Triage) Why(ctx context.Context, job pipeline.JobID, task pipeline.TaskID) (TaskStory, error) {
	story, err := t.why(ctx, pipeline.Ref{Job: job, ID: task})
	if err != nil {
		return story, fmt.Errorf("why %s/%s: %w", job, task, err)
	}
	return story, nil
}

func (t *Triage) why(ctx context.Context, ref pipeline.Ref) (TaskStory, error) {
	var s TaskStory
	var err error
	if s.Job, err = t.cfg.Store.Job(ctx, ref.Job); err != nil {
		return s, err
	}
	if s.Task, err = t.cfg.Store.Task(ctx, ref); err != nil {
		return s, err
	}
	history, err := pipeline.ReadHistory(ctx, t.cfg.Store, ref)
	if err != nil {
		return s, err
	}
	s.tell(history)
	if s.Missing, err = t.missingOf(ctx, s.Task); err != nil {
		return s, err
	}
	if err := t.context(ctx, &s); err != nil {
		return s, err
	}
	return s, nil
}

// tell puts records and tries of each generation together.
func (s *TaskStory) tell(h pipeline.History) {
	index := map[int64]int{}
	at := func(generation int64, worker string) *AttemptStory {
		i, known := index[generation]
		if !known {
			i = len(s.Attempts)
			index[generation] = i
			s.Attempts = append(s.Attempts, AttemptStory{Generation: generation, Worker: worker})
		}
		return &s.Attempts[i]
	}
	counting := s.Task.Counting(h.Records)
	for _, r := range counting {
		a := at(r.Generation, r.Worker)
		a.Record = &r
		add(&s.Sums, r)
	}
	for _, r := range h.Records {
		switch {
		case r.Ender == pipeline.ClosedBy:
			s.Closed = append(s.Closed, r)
		case at(r.Generation, r.Worker).Record.Ender != r.Ender:
			a := at(r.Generation, r.Worker)
			a.Others = append(a.Others, r)
		}
	}
	for _, j := range h.Journals {
		a := at(j.Generation, j.Worker)
		a.Tries = append(a.Tries, j.Tries...)
	}
	for i := range s.Attempts {
		if r := s.Attempts[i].Record; r != nil {
			s.Attempts[i].Unnamed = r.UnnamedBeside(len(s.Attempts[i].Tries))
		}
		slices.SortStableFunc(s.Attempts[i].Tries, func(a, b pipeline.Try) int { return cmp.Compare(a.At, b.At) })
	}
	if s.Task.Status == pipeline.TaskClaimed {
		a := at(s.Task.Generation, s.Task.ClaimedBy)
		a.Running = a.Record == nil
	}
}

func add(sums *pipeline.Record, r pipeline.Record) {
	sums.Tries += r.Tries
	sums.Charged += r.Charged
	sums.Unnamed += r.Unnamed
	sums.Answers += r.Answers
	sums.Cost += r.Cost
	sums.Usage.Input += r.Usage.Input
	sums.Usage.Output += r.Usage.Output
	sums.Usage.CacheRead += r.Usage.CacheRead
	sums.Usage.CacheWrite += r.Usage.CacheWrite
	for kind, n := range r.Failures {
		if sums.Failures == nil {
			sums.Failures = map[pipeline.Kind]int{}
		}
		sums.Failures[kind] += n
	}
}

// context adds the chunk and the cancellation, where there are any.
func (t *Triage) context(ctx context.Context, s *TaskStory) error {
	if s.Task.ID.Kind() == pipeline.TaskWork {
		m, err := pipeline.ReadManifest(ctx, t.cfg.Store, s.Job.ID)
		if err != nil && !errors.Is(err, pipeline.ErrNotFound) {
			return err
		}
		if n := s.Task.ID.Number(); n >= 0 && n < len(m.Chunks) {
			s.Chunk = &m.Chunks[n]
			if s.Item, s.Line, err = t.itemOf(ctx, s.Job, m.Document, *s.Chunk); err != nil {
				return err
			}
		}
	}
	if s.Task.Status != pipeline.TaskCancelled {
		return nil
	}
	body, err := t.cfg.Store.Item(ctx, s.Job.ID, pipeline.CancellationKey(s.Task.ID))
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := pipeline.Decode[pipeline.Cancellation](body, "cancellation")
	s.Cancellation = &c
	return err
}

// missingOf is the cells of a task's accepted stages that have neither an answer nor a gate.
func (t *Triage) missingOf(ctx context.Context, row pipeline.Task) ([]pipeline.Cell, error) {
	cells, err := t.acceptedOf(ctx, row)
	return withoutAnswer(cells), err
}

// acceptedOf is the cells of a task's accepted stages.
func (t *Triage) acceptedOf(ctx context.Context, row pipeline.Task) ([]pipeline.Cell, error) {
	if row.ID.Kind() != pipeline.TaskWork {
		return nil, nil
	}
	var all []pipeline.Cell
	for stage := 1; stage <= row.Accepted; stage++ {
		cells, err := t.acceptedIn(ctx, row, stage)
		if err != nil {
			return nil, err
		}
		all = append(all, cells...)
	}
	return all, nil
}

func (t *Triage) acceptedIn(ctx context.Context, row pipeline.Task, stage int) ([]pipeline.Cell, error) {
	body, err := pipeline.ReadBody(ctx, t.cfg.Store, row, stage)
	if err != nil {
		return nil, err
	}
	for i := range body.Cells {
		body.Cells[i].Chunk = row.ID.Number()
	}
	return body.Cells, nil
}

func withoutAnswer(cells []pipeline.Cell) []pipeline.Cell {
	var missing []pipeline.Cell
	for _, cell := range cells {
		if cell.State == pipeline.CellFailed || cell.State == pipeline.CellNotAsked {
			missing = append(missing, cell)
		}
	}
	return missing
}
