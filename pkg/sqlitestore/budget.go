package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"holdfast/pkg/pipeline"
)

// budgetRow is a job's money as it is stored: read, worked out and written back under the write lock.
type budgetRow struct {
	pipeline.Budget
	Raised map[pipeline.TaskID]int64 `json:"raised_by,omitempty"` // the last generation whose redrive raised the ceiling
}

// OpenBudget sets the ceiling only if the job has none.
func (s *Store) OpenBudget(ctx context.Context, job pipeline.JobID, ceiling pipeline.Money) error {
	row := budgetRow{Budget: pipeline.Budget{Ceiling: ceiling, Remaining: ceiling}}
	return named("open budget of "+string(job), s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO budgets (job, body) VALUES (?, ?) ON CONFLICT (job) DO NOTHING`, job, text(row))
		return err
	}))
}

// RaiseBudget adds to the ceiling, once per redrive.
func (s *Store) RaiseBudget(ctx context.Context, ref pipeline.Ref, generation int64, amount pipeline.Money) error {
	_, err := s.changeBudget(ctx, "raise", ref.Job, func(b *budgetRow) error {
		if last, raised := b.Raised[ref.ID]; raised && generation <= last {
			return nil
		}
		if b.Raised == nil {
			b.Raised = map[pipeline.TaskID]int64{}
		}
		b.Raised[ref.ID] = generation
		b.Ceiling += amount
		b.Remaining += amount
		return nil
	})
	return err
}

// Reserve takes money under a key and settles others in the same write.
func (s *Store) Reserve(ctx context.Context, job pipeline.JobID, r pipeline.Reservation, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	return s.changeBudget(ctx, "reserve", job, func(b *budgetRow) error {
		if open := b.find(r); open >= 0 {
			if b.Open[open].Amount != r.Amount {
				return fmt.Errorf("%w: %s stage %d has %v reserved, not %v", pipeline.ErrFenced, r.Task, r.Stage, b.Open[open].Amount, r.Amount)
			}
			return nil // our own write, its answer was lost
		}
		b.settle(settle)
		if b.Remaining < r.Amount {
			return fmt.Errorf("%w: %v remain of %v, %v are needed", pipeline.ErrCeiling, b.Remaining, b.Ceiling, r.Amount)
		}
		b.Remaining -= r.Amount
		b.Open = append(b.Open, r)
		slices.SortFunc(b.Open, byKey)
		return nil
	})
}

// Settle closes reservations and gives the rest back.
func (s *Store) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	return s.changeBudget(ctx, "settle", job, func(b *budgetRow) error {
		b.settle(settle)
		return nil
	})
}

// Budget is a consistent read.
func (s *Store) Budget(ctx context.Context, job pipeline.JobID) (pipeline.Budget, error) {
	var b budgetRow
	err := s.one(ctx, func(row scanner) (err error) {
		b, err = decodeRow[budgetRow](row)
		return err
	}, `SELECT body FROM budgets WHERE job = ?`, job)
	return b.Budget, named("budget of "+string(job), err)
}

// changeBudget writes what change makes of the row; if change refuses, nothing is written and the row as it stands
// is returned with the refusal.
func (s *Store) changeBudget(ctx context.Context, op string, job pipeline.JobID, change func(*budgetRow) error) (stands pipeline.Budget, err error) {
	err = s.write(ctx, func(tx *tx) error {
		b, err := decodeRow[budgetRow](tx.row(`SELECT body FROM budgets WHERE job = ?`, job))
		if errors.Is(err, sql.ErrNoRows) {
			return pipeline.ErrNotFound
		}
		if err != nil {
			return err
		}
		stands = b.Budget
		stands.Open = slices.Clone(b.Open)
		if err := change(&b); err != nil {
			return err
		}
		body := text(b)
		if err := weigh(body); err != nil {
			return err
		}
		stands = b.Budget
		_, err = tx.exec(`UPDATE budgets SET body = ? WHERE job = ?`, body, job)
		return err
	})
	return stands, named(op+" budget of "+string(job), err)
}

// settle closes those of the reservations that are open; their Amount is what was really spent.
func (b *budgetRow) settle(settle []pipeline.Reservation) {
	for _, r := range settle {
		open := b.find(r)
		if open < 0 {
			continue
		}
		b.Remaining += b.Open[open].Amount - r.Amount
		b.Spent += r.Amount
		b.Open = slices.Delete(b.Open, open, open+1)
	}
	if len(b.Open) == 0 {
		b.Open = nil
	}
}

func byKey(x, y pipeline.Reservation) int {
	return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Generation, y.Generation),
		cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Part, y.Part))
}

// find is where the reservation's key is open, or -1.
func (b *budgetRow) find(r pipeline.Reservation) int {
	return slices.IndexFunc(b.Open, func(open pipeline.Reservation) bool {
		open.Amount = r.Amount
		return open == r
	})
}
