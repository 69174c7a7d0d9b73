package dynamostore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
)

// A job's money is one row: what remains, and a column for each open reservation. A write names only the columns that it
// changes, and what remains is changed by a difference; so many who reserve at once do not keep each other waiting.

const (
	openPrefix   = "open#"
	raisedPrefix = "raised#"
)

func budgetKey(job pipeline.JobID) item { return keyOf(jobPartition(job), "budget") }

// openColumn names a reservation: the task's id comes last, since it may hold the mark between the parts.
func openColumn(r pipeline.Reservation) string {
	return fmt.Sprintf("%s%d#%d#%d#%s", openPrefix, r.Generation, r.Stage, r.Part, r.Task)
}

func reservationOf(column string, amount int64) (pipeline.Reservation, bool) {
	parts := strings.SplitN(strings.TrimPrefix(column, openPrefix), "#", 4)
	if len(parts) != 4 {
		return pipeline.Reservation{}, false
	}
	generation, err1 := strconv.ParseInt(parts[0], 10, 64)
	stage, err2 := strconv.Atoi(parts[1])
	part, err3 := strconv.Atoi(parts[2])
	return pipeline.Reservation{
		Task: pipeline.TaskID(parts[3]), Generation: generation, Stage: stage, Part: part, Amount: pipeline.Money(amount),
	}, err1 == nil && err2 == nil && err3 == nil
}

func budgetOf(row item) pipeline.Budget {
	b := pipeline.Budget{
		Ceiling:   pipeline.Money(numberIn(row, "ceiling")),
		Remaining: pipeline.Money(numberIn(row, "remaining")),
		Spent:     pipeline.Money(numberIn(row, "spent")),
	}
	for column := range row {
		if !strings.HasPrefix(column, openPrefix) {
			continue
		}
		if r, ok := reservationOf(column, numberIn(row, column)); ok {
			b.Open = append(b.Open, r)
		}
	}
	slices.SortFunc(b.Open, func(x, y pipeline.Reservation) int {
		return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Generation, y.Generation), cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Part, y.Part))
	})
	return b
}

// budget reads the row.
func (s *Store) budget(ctx context.Context, job pipeline.JobID) (item, error) {
	row, err := s.get(ctx, s.rows, budgetKey(job))
	if err == nil && row == nil {
		err = pipeline.ErrNotFound
	}
	return row, named("budget of job "+string(job), err)
}

// Budget reads it.
func (s *Store) Budget(ctx context.Context, job pipeline.JobID) (pipeline.Budget, error) {
	row, err := s.budget(ctx, job)
	if err != nil {
		return pipeline.Budget{}, err
	}
	return budgetOf(row), nil
}

// OpenBudget sets the ceiling of a job that has none.
func (s *Store) OpenBudget(ctx context.Context, job pipeline.JobID, ceiling pipeline.Money) error {
	row := budgetKey(job)
	for _, column := range []string{"ceiling", "remaining"} {
		row[column] = valueOf(int64(ceiling))
	}
	row["spent"] = valueOf(int64(0))
	_, err := s.putOnce(ctx, s.rows, row)
	return named("open the budget of job "+string(job), err)
}

// RaiseBudget adds to the ceiling, once per redrive.
func (s *Store) RaiseBudget(ctx context.Context, ref pipeline.Ref, generation int64, amount pipeline.Money) error {
	column := raisedPrefix + string(ref.ID)
	_, err := s.client.UpdateItem(ctx, update(s.rows, budgetKey(ref.Job),
		all(
			present(PartitionKey),
			either(
				absent(column),
				compared(column, "<", generation, false),
			),
		),
		set(column, generation),
		add("ceiling", amount),
		add("remaining", amount),
	))
	old, is := refused(err)
	switch {
	case is && len(old) == 0:
		err = pipeline.ErrNotFound
	case is:
		return nil // raised already
	default:
		err = explain(ctx, err)
	}
	return named("raise the budget of job "+string(ref.Job), err)
}

// Reserve takes an amount and settles others, both or neither.
func (s *Store) Reserve(ctx context.Context, job pipeline.JobID, r pipeline.Reservation, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	row, err := s.budget(ctx, job)
	if err != nil {
		return pipeline.Budget{}, err
	}
	what := fmt.Sprintf("reserve %v for %s", r.Amount, r.Task)
	err = repeat(ctx, func() (again bool, err error) {
		if _, open := row[openColumn(r)]; open {
			if amount := pipeline.Money(numberIn(row, openColumn(r))); amount != r.Amount {
				return false, fmt.Errorf("%s: %v is reserved under this key: %w", what, amount, pipeline.ErrFenced)
			}
			return false, nil // our own write, its answer was lost
		}
		w := settling(row, settle)
		w.back -= r.Amount
		w.changes = append(w.changes, set(openColumn(r), int64(r.Amount)))
		w.conditions = append(w.conditions,
			absent(openColumn(r)),
			compared("remaining", ">=", int64(-w.back), false),
		)
		remains := budgetOf(row).Remaining + w.back
		if remains < 0 {
			return false, fmt.Errorf("%s: %v remains: %w", what, remains+r.Amount, pipeline.ErrCeiling)
		}
		row, again, err = s.spend(ctx, job, w, row)
		return again, named(what, err)
	})
	return budgetOf(row), err
}

// Settle closes reservations. What is not open was settled before.
func (s *Store) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	row, err := s.budget(ctx, job)
	if err != nil {
		return pipeline.Budget{}, err
	}
	err = repeat(ctx, func() (again bool, err error) {
		w := settling(row, settle)
		if len(w.changes) == 0 {
			return false, nil
		}
		row, again, err = s.spend(ctx, job, w, row)
		return again, err
	})
	if err != nil {
		return pipeline.Budget{}, named("settle reservations of job "+string(job), err)
	}
	return budgetOf(row), nil
}

// spending is one write of a budget.
type spending struct {
	conditions []clause
	changes    []change
	spent      pipeline.Money
	back       pipeline.Money // how much more remains afterwards
}

// settling closes those of the reservations that the row shows as open, on condition that they still are.
func settling(row item, settle []pipeline.Reservation) spending {
	var w spending
	done := map[string]bool{}
	for _, r := range settle {
		column := openColumn(r)
		if _, open := row[column]; !open || done[column] {
			continue
		}
		done[column] = true
		reserved := numberIn(row, column)
		w.conditions = append(w.conditions, compared(column, "=", reserved, false))
		w.changes = append(w.changes, remove(column))
		w.back += pipeline.Money(reserved) - r.Amount
		w.spent += r.Amount
	}
	return w
}

// spend makes the write and returns the row as it then is; again says that others have changed what it was about.
func (s *Store) spend(ctx context.Context, job pipeline.JobID, w spending, seen item) (row item, again bool, err error) {
	changes := append(w.changes, add("remaining", w.back))
	if w.spent != 0 {
		changes = append(changes, add("spent", w.spent))
	}
	out, err := s.client.UpdateItem(ctx, update(s.rows, budgetKey(job), all(w.conditions...), changes...))
	if err == nil {
		return out.Attributes, false, nil
	}
	old, is := refused(err)
	if !is {
		return seen, false, explain(ctx, err)
	}
	if len(old) == 0 {
		old, err = s.budget(ctx, job)
		return old, true, err
	}
	return old, true, nil
}
