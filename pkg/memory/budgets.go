package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"holdfast/pkg/pipeline"
)

type budget struct {
	ceiling, remaining, spent pipeline.Money
	raised                    map[pipeline.TaskID]int64               // the last generation whose redrive raised it
	open                      map[pipeline.Reservation]pipeline.Money // by their key: without the amount
}

func keyOf(r pipeline.Reservation) pipeline.Reservation {
	r.Amount = 0
	return r
}

func (b *budget) shown() pipeline.Budget {
	shown := pipeline.Budget{Ceiling: b.ceiling, Remaining: b.remaining, Spent: b.spent}
	for key, amount := range b.open {
		key.Amount = amount
		shown.Open = append(shown.Open, key)
	}
	slices.SortFunc(shown.Open, func(x, y pipeline.Reservation) int {
		return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Generation, y.Generation), cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Part, y.Part))
	})
	return shown
}

// settle closes what is open; what is not was settled before.
func (b *budget) settle(reservations []pipeline.Reservation) {
	for _, r := range reservations {
		reserved, open := b.open[keyOf(r)]
		if !open {
			continue
		}
		delete(b.open, keyOf(r))
		b.remaining += reserved - r.Amount
		b.spent += r.Amount
	}
}

func (s *Store) budget(job pipeline.JobID) (*budget, error) {
	b, exists := s.budgets[job]
	if !exists {
		return nil, fmt.Errorf("budget of job %s: %w", job, pipeline.ErrNotFound)
	}
	return b, nil
}

// OpenBudget sets the ceiling of a job that has none.
func (s *Store) OpenBudget(ctx context.Context, job pipeline.JobID, ceiling pipeline.Money) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, exists := s.budgets[job]; exists {
		return nil
	}
	s.budgets[job] = &budget{
		ceiling: ceiling, remaining: ceiling,
		raised: map[pipeline.TaskID]int64{}, open: map[pipeline.Reservation]pipeline.Money{},
	}
	return nil
}

// RaiseBudget adds to the ceiling, once per redrive.
func (s *Store) RaiseBudget(ctx context.Context, ref pipeline.Ref, generation int64, amount pipeline.Money) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	b, err := s.budget(ref.Job)
	if err != nil {
		return err
	}
	if last, raised := b.raised[ref.ID]; raised && generation <= last {
		return nil
	}
	b.raised[ref.ID] = generation
	b.ceiling += amount
	b.remaining += amount
	return nil
}

// Reserve takes an amount and settles others, both or neither.
func (s *Store) Reserve(ctx context.Context, job pipeline.JobID, r pipeline.Reservation, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Budget{}, err
	}
	defer s.mu.Unlock()
	b, err := s.budget(job)
	if err != nil {
		return pipeline.Budget{}, err
	}
	if amount, open := b.open[keyOf(r)]; open {
		if amount == r.Amount {
			return b.shown(), nil // our own write, its answer was lost
		}
		return b.shown(), fmt.Errorf("reserve %v for %s: %v is reserved under this key: %w", r.Amount, r.Task, amount, pipeline.ErrFenced)
	}
	after := *b
	after.open = maps.Clone(b.open)
	after.settle(settle)
	if after.remaining < r.Amount {
		return b.shown(), fmt.Errorf("reserve %v for %s: %v remains: %w", r.Amount, r.Task, after.remaining, pipeline.ErrCeiling)
	}
	after.open[keyOf(r)] = r.Amount
	after.remaining -= r.Amount
	*b = after
	return b.shown(), nil
}

// Settle closes reservations.
func (s *Store) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Budget{}, err
	}
	defer s.mu.Unlock()
	b, err := s.budget(job)
	if err != nil {
		return pipeline.Budget{}, err
	}
	b.settle(settle)
	return b.shown(), nil
}

// Budget reads it.
func (s *Store) Budget(ctx context.Context, job pipeline.JobID) (pipeline.Budget, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Budget{}, err
	}
	defer s.mu.Unlock()
	b, err := s.budget(job)
	if err != nil {
		return pipeline.Budget{}, err
	}
	return b.shown(), nil
}
