package pipelinetest

import (
	"testing"

	"holdfast/pkg/pipeline"
)

var budgetPromises = []promise{
	{"a budget is opened once", budgetOpensOnce},
	{"money is reserved under its key, and what remains is less by that", reserveTakes},
	{"a reservation whose answer was lost takes once", lostReserve},
	{"a reservation over what remains is refused whole", ceilingHolds},
	{"settling gives back the rest, twice no more than once", settleOnce},
	{"what was spent over its reservation is written down, whatever remains", settleOver},
	{"a refund whose answer was lost is recognised", lostSettle},
	{"reserving settles others in the same write", reserveSettles},
	{"a late worker's reservation is not its successor's", reservationsAreFenced},
	{"the ceiling is raised once per redrive of a task", raisedOnceEach},
	{"a budget that was not opened is not found", noBudget},
}

func reservation(generation int64, stage int, amount pipeline.Money) pipeline.Reservation {
	return pipeline.Reservation{Task: pipeline.WorkTask(1), Generation: generation, Stage: stage, Amount: amount}
}

// opened is a bench whose job has a budget of 100.
func opened(t *testing.T, h Harness) *bench {
	t.Helper()
	b := newBench(t, h)
	b.must(h.Store.OpenBudget(b.ctx, b.job, 100))
	return b
}

func (b *bench) budget(ceiling, remaining, spent pipeline.Money, open ...pipeline.Reservation) {
	b.Helper()
	got, err := b.Store.Budget(b.ctx, b.job)
	b.must(err)
	b.isBudget(got, ceiling, remaining, spent, open...)
}

func (b *bench) isBudget(got pipeline.Budget, ceiling, remaining, spent pipeline.Money, open ...pipeline.Reservation) {
	b.Helper()
	if got.Ceiling != ceiling || got.Remaining != remaining || got.Spent != spent || !sameReservations(got.Open, open) {
		b.Errorf("got %s, want ceiling %d, remaining %d, spent %d, open %v", pipeline.Encode(got), ceiling, remaining, spent, open)
	}
}

func sameReservations(got, want []pipeline.Reservation) bool {
	if len(got) != len(want) {
		return false
	}
	open := map[pipeline.Reservation]bool{}
	for _, r := range got {
		open[r] = true
	}
	for _, r := range want {
		if !open[r] {
			return false
		}
	}
	return true
}

func budgetOpensOnce(t *testing.T, h Harness) {
	b := opened(t, h)
	b.budget(100, 100, 0)
	b.must(h.Store.OpenBudget(b.ctx, b.job, 500))
	b.budget(100, 100, 0)
	_, err := h.Store.Reserve(b.ctx, b.job, reservation(1, 1, 60))
	b.must(err)
	b.must(h.Store.OpenBudget(b.ctx, b.job, 100))
	b.budget(100, 40, 0, reservation(1, 1, 60))
}

func reserveTakes(t *testing.T, h Harness) {
	b := opened(t, h)
	second := reservation(1, 1, 30)
	second.Part = 1
	third := reservation(1, 1, 10)
	third.Task = pipeline.WorkTask(2)
	var open []pipeline.Reservation
	remaining := pipeline.Money(100)
	for _, r := range []pipeline.Reservation{reservation(1, 1, 20), second, third, reservation(1, 2, 5), reservation(2, 1, 5)} {
		open = append(open, r)
		remaining -= r.Amount
		got, err := h.Store.Reserve(b.ctx, b.job, r)
		b.must(err)
		b.isBudget(got, 100, remaining, 0, open...)
		b.budget(100, remaining, 0, open...)
	}
}

func lostReserve(t *testing.T, h Harness) {
	b := opened(t, h)
	r := reservation(1, 1, 60)
	loses(b, "Reserve", func(s pipeline.Store) error { _, err := s.Reserve(b.ctx, b.job, r); return err })
	got, err := h.Store.Reserve(b.ctx, b.job, r)
	b.must(err)
	b.isBudget(got, 100, 40, 0, r)
	if _, err := h.Store.Reserve(b.ctx, b.job, reservation(1, 1, 10)); err == nil {
		t.Error("another amount was reserved under a key that is open")
	}
	b.budget(100, 40, 0, r)
}

func ceilingHolds(t *testing.T, h Harness) {
	b := opened(t, h)
	first := reservation(1, 1, 60)
	_, err := h.Store.Reserve(b.ctx, b.job, first)
	b.must(err)
	got, err := h.Store.Reserve(b.ctx, b.job, reservation(1, 2, 41))
	b.fails(err, pipeline.ErrCeiling)
	b.isBudget(got, 100, 40, 0, first)
	settled := first
	settled.Amount = 60
	_, err = h.Store.Reserve(b.ctx, b.job, reservation(1, 2, 41), settled)
	b.fails(err, pipeline.ErrCeiling)
	b.budget(100, 40, 0, first) // nothing was settled either
	last := reservation(1, 2, 40)
	_, err = h.Store.Reserve(b.ctx, b.job, last)
	b.must(err)
	b.budget(100, 0, 0, first, last)
}

func settleOnce(t *testing.T, h Harness) {
	b := opened(t, h)
	first, second := reservation(1, 1, 60), reservation(1, 2, 30)
	for _, r := range []pipeline.Reservation{first, second} {
		_, err := h.Store.Reserve(b.ctx, b.job, r)
		b.must(err)
	}
	for range 2 {
		got, err := h.Store.Settle(b.ctx, b.job, reservation(1, 1, 25))
		b.must(err)
		b.isBudget(got, 100, 45, 25, second)
		b.budget(100, 45, 25, second)
	}
	for range 2 {
		_, err := h.Store.Settle(b.ctx, b.job, reservation(1, 1, 25), reservation(1, 2, 30), reservation(9, 9, 9))
		b.must(err)
		b.budget(100, 45, 55)
	}
}

func settleOver(t *testing.T, h Harness) {
	b := opened(t, h)
	_, err := h.Store.Reserve(b.ctx, b.job, reservation(1, 1, 90))
	b.must(err)
	_, err = h.Store.Settle(b.ctx, b.job, reservation(1, 1, 130))
	b.must(err)
	b.budget(100, -30, 130)
	_, err = h.Store.Reserve(b.ctx, b.job, reservation(1, 2, 1))
	b.fails(err, pipeline.ErrCeiling)
}

func lostSettle(t *testing.T, h Harness) {
	b := opened(t, h)
	_, err := h.Store.Reserve(b.ctx, b.job, reservation(1, 1, 60))
	b.must(err)
	settle := reservation(1, 1, 10)
	loses(b, "Settle", func(s pipeline.Store) error { _, err := s.Settle(b.ctx, b.job, settle); return err })
	got, err := h.Store.Settle(b.ctx, b.job, settle)
	b.must(err)
	b.isBudget(got, 100, 90, 10)
}

func reserveSettles(t *testing.T, h Harness) {
	b := opened(t, h)
	_, err := h.Store.Reserve(b.ctx, b.job, reservation(1, 1, 60))
	b.must(err)
	next := reservation(1, 2, 70) // fits only with what the first gives back
	for range 2 {
		got, err := h.Store.Reserve(b.ctx, b.job, next, reservation(1, 1, 20))
		b.must(err)
		b.isBudget(got, 100, 10, 20, next)
	}
}

func reservationsAreFenced(t *testing.T, h Harness) {
	b := opened(t, h)
	old, successor := reservation(1, 1, 30), reservation(2, 1, 30)
	for _, r := range []pipeline.Reservation{old, successor} {
		_, err := h.Store.Reserve(b.ctx, b.job, r)
		b.must(err)
	}
	_, err := h.Store.Settle(b.ctx, b.job, old) // by the reaper, as fully spent
	b.must(err)
	_, err = h.Store.Settle(b.ctx, b.job, reservation(1, 1, 0)) // by the zombie
	b.must(err)
	b.budget(100, 40, 30, successor)
}

func raisedOnceEach(t *testing.T, h Harness) {
	b := opened(t, h)
	one, other := pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(1)}, pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(2)}
	loses(b, "RaiseBudget", func(s pipeline.Store) error { return s.RaiseBudget(b.ctx, one, 2, 50) })
	b.must(h.Store.RaiseBudget(b.ctx, one, 2, 50))
	b.budget(150, 150, 0)
	b.must(h.Store.RaiseBudget(b.ctx, other, 2, 20))
	b.budget(170, 170, 0)
	b.must(h.Store.RaiseBudget(b.ctx, one, 3, 7))
	b.must(h.Store.RaiseBudget(b.ctx, one, 2, 50))
	b.must(h.Store.RaiseBudget(b.ctx, other, 2, 20))
	b.budget(177, 177, 0)
	b.must(h.Store.RaiseBudget(b.ctx, pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(3)}, 0, 1)) // a row that was never claimed
	b.budget(178, 178, 0)
}

func noBudget(t *testing.T, h Harness) {
	b := newBench(t, h)
	_, err := h.Store.Budget(b.ctx, b.job)
	b.fails(err, pipeline.ErrNotFound)
	_, err = h.Store.Reserve(b.ctx, b.job, reservation(1, 1, 1))
	b.fails(err, pipeline.ErrNotFound)
	_, err = h.Store.Settle(b.ctx, b.job, reservation(1, 1, 1))
	b.fails(err, pipeline.ErrNotFound)
	b.fails(h.Store.RaiseBudget(b.ctx, pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(1)}, 2, 1), pipeline.ErrNotFound)
	_, err = h.Store.Budget(b.ctx, b.job)
	b.fails(err, pipeline.ErrNotFound)
}
