package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	what := fmt.Sprintf("reserve %v for %s", r.Amount, r.Task)
	return s.changeBudget(ctx, job, func(row item) (w spending, doubt, err error) {
		if _, open := row[openColumn(r)]; open {
			if amount := pipeline.Money(numberIn(row, openColumn(r))); amount != r.Amount {
				return w, errDoubt, fmt.Errorf("%s: %v is reserved under this key: %w", what, amount, pipeline.ErrFenced)
			}
			return w, errDoubt, nil // our own write, its answer was lost
		}
		w, doubt = settling(row, settle)
		w.back -= r.Amount
		w.changes = append(w.changes, set(openColumn(r), int64(r.Amount)))
		w.conditions = append(w.conditions,
			absent(openColumn(r)),
			compared("remaining", ">=", int64(-w.back), false),
		)
		if remains := budgetOf(row).Remaining + w.back; remains < 0 {
			return w, errDoubt, fmt.Errorf("%s: %v remains: %w", what, remains+r.Amount, pipeline.ErrCeiling)
		}
		return w, doubt, nil
	})
}

// Settle closes reservations. What is not open was settled before.
func (s *Store) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	return s.changeBudget(ctx, job, func(row item) (w spending, doubt, err error) {
		w, doubt = settling(row, settle)
		if len(w.changes) == 0 {
			doubt = errDoubt
		}
		return w, doubt, nil
	})
}

// errDoubt says that a sight of the row that may be old is not enough: what it shows must be read first.
var errDoubt = errors.New("read it again")

// changeBudget makes the write that decide finds right for the row; without changes none is needed. It begins with the
// row as this process last saw it: the conditions refuse what is not true any more, and the refusal shows what is.
func (s *Store) changeBudget(ctx context.Context, job pipeline.JobID, decide func(row item) (w spending, doubt, err error)) (pipeline.Budget, error) {
	row, fresh := s.budgets.last(job), false
	err := repeat(ctx, func() (again bool, err error) {
		if row == nil {
			if row, err = s.budget(ctx, job); err != nil {
				return false, err
			}
			fresh = true
		}
		w, doubt, err := decide(row)
		if doubt != nil && !fresh {
			row = nil
			return true, nil
		}
		if err != nil || len(w.changes) == 0 {
			return false, err
		}
		row, again, err = s.spend(ctx, job, w)
		fresh = true
		return again, err
	})
	if row == nil {
		return pipeline.Budget{}, err
	}
	s.budgets.keep(job, row)
	return budgetOf(row), err
}

// spending is one write of a budget.
type spending struct {
	conditions []clause
	changes    []change
	spent      pipeline.Money
	back       pipeline.Money // how much more remains afterwards
}

// settling closes those of the reservations that the row shows as open, on condition that they still are.
func settling(row item, settle []pipeline.Reservation) (w spending, doubt error) {
	done := map[string]bool{}
	for _, r := range settle {
		column := openColumn(r)
		if done[column] {
			continue
		}
		if _, open := row[column]; !open {
			doubt = errDoubt
			continue
		}
		done[column] = true
		reserved := numberIn(row, column)
		w.conditions = append(w.conditions, compared(column, "=", reserved, false))
		w.changes = append(w.changes, remove(column))
		w.back += pipeline.Money(reserved) - r.Amount
		w.spent += r.Amount
	}
	return w, doubt
}

// spend makes the write and returns the row as it then is; again says that others have changed what it was about. The
// row is nil where it was not shown.
func (s *Store) spend(ctx context.Context, job pipeline.JobID, w spending) (row item, again bool, err error) {
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
		return nil, false, named("change the budget of job "+string(job), explain(ctx, err))
	}
	if len(old) == 0 {
		return nil, true, nil
	}
	return old, true, nil
}

// sights are the rows of budgets as this process last saw them.
type sights struct {
	mu   sync.Mutex
	rows map[pipeline.JobID]item
}

// mostSights bounds them: a process works on few jobs at a time.
const mostSights = 100

func (s *sights) last(job pipeline.JobID) item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[job]
}

func (s *sights) keep(job pipeline.JobID, row item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil || len(s.rows) >= mostSights {
		s.rows = map[pipeline.JobID]item{}
	}
	s.rows[job] = row
}
