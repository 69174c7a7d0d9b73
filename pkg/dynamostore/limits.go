package dynamostore

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// A model's line is one row: when the next unit of work arrives in theory, and before when nothing may start. While the
// line is busy a slot is one addition, which many can make at once; only an idle line, or one under a penalty, is
// compared and swapped.

const (
	arrivalKey   = "arrival"
	notBeforeKey = "not_before"
	lastKey      = "last" // who wrote last: a write whose answer was lost and that is sent again must not take twice
)

func lineKey(model string) item { return keyOf(limitPartition(model), "line") }

// millis is a cost in whole milliseconds, rounded up: what costs less is not free.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// TakeSlot reserves cost on the model's line.
func (s *Store) TakeSlot(ctx context.Context, w pipeline.SlotWrite) (start pipeline.Instant, err error) {
	what := "take a slot of " + w.Model
	me := rand.Text()
	err = repeat(ctx, func() (again bool, err error) {
		row, err := s.stepLine(ctx, w, me)
		if err != nil {
			return false, named(what, err)
		}
		if row.taken {
			start = max(row.arrival, w.Now)
			return false, nil
		}
		line := max(row.arrival, w.Now.Add(-w.Burst), row.notBefore)
		if start = max(line, w.Now); start > w.Now.Add(w.Horizon) {
			return false, fmt.Errorf("the line of %s is full until %s: %w", w.Model, start, pipeline.ErrBusy)
		}
		taken, err := s.swapLine(ctx, w.Model, me, row, line+pipeline.Instant(millis(w.Cost)))
		return !taken, named(what, err)
	})
	if err != nil {
		return 0, err
	}
	return start, nil
}

// line is a model's line as it stood before a write.
type line struct {
	arrival   pipeline.Instant
	notBefore pipeline.Instant
	taken     bool
}

func lineOf(row item) line {
	return line{arrival: pipeline.Instant(numberIn(row, arrivalKey)), notBefore: pipeline.Instant(numberIn(row, notBeforeKey))}
}

// stepLine takes a slot from a busy line. From any other nothing is taken; the line is shown.
func (s *Store) stepLine(ctx context.Context, w pipeline.SlotWrite, me string) (line, error) {
	cost := millis(w.Cost)
	out, err := s.client.UpdateItem(ctx, update(s.rows, lineKey(w.Model),
		all(
			compared(arrivalKey, ">=", int64(w.Now.Add(-w.Burst)), false),
			compared(arrivalKey, "<=", int64(w.Now.Add(w.Horizon)), false),
			afterPenalty,
			notMine(me),
		),
		add(arrivalKey, cost),
		set(lastKey, me),
	))
	var l line
	switch old, is := refused(err); {
	case is && textIn(old, lastKey) == me:
		l = lineOf(old)
	case is:
		return lineOf(old), nil
	case err != nil:
		return line{}, explain(ctx, err)
	default:
		l = lineOf(out.Attributes)
	}
	l.arrival -= pipeline.Instant(cost)
	l.taken = true
	return l, nil
}

// afterPenalty says that the line lies behind its penalty.
func afterPenalty(e *expression) string {
	return "(attribute_not_exists(" + e.name(notBeforeKey) + ") OR " + e.name(notBeforeKey) + " <= " + e.name(arrivalKey) + ")"
}

// notMine says that this very write has not been made before.
func notMine(me string) clause {
	return either(
		absent(lastKey),
		compared(lastKey, "<>", me, false),
	)
}

// swapLine moves the line if it is still as it was seen.
func (s *Store) swapLine(ctx context.Context, model, me string, seen line, to pipeline.Instant) (moved bool, err error) {
	_, err = s.client.UpdateItem(ctx, update(s.rows, lineKey(model),
		all(
			equals(arrivalKey, seen.arrival),
			equals(notBeforeKey, seen.notBefore),
		),
		set(arrivalKey, int64(to)),
		set(lastKey, me),
	))
	if old, is := refused(err); is {
		return textIn(old, lastKey) == me, nil
	}
	return err == nil, explain(ctx, err)
}

// Refund gives back what was not used. It never raises the line.
func (s *Store) Refund(ctx context.Context, model string, unused, burst time.Duration, now pipeline.Instant) error {
	back := int64(unused / time.Millisecond)
	floor := now.Add(-burst)
	me := rand.Text()
	return named("refund to the line of "+model, repeat(ctx, func() (again bool, err error) {
		_, err = s.client.UpdateItem(ctx, update(s.rows, lineKey(model),
			all(
				compared(arrivalKey, ">=", int64(floor)+back, false),
				notMine(me),
			),
			add(arrivalKey, -back),
			set(lastKey, me),
		))
		old, is := refused(err)
		if !is {
			return false, explain(ctx, err)
		}
		seen := lineOf(old)
		if len(old) == 0 || seen.arrival <= floor || textIn(old, lastKey) == me {
			return false, nil
		}
		moved, err := s.swapLine(ctx, model, me, seen, floor)
		return !moved, err
	}))
}

// Penalise lets nothing start before until.
func (s *Store) Penalise(ctx context.Context, model string, until pipeline.Instant) error {
	_, err := s.client.UpdateItem(ctx, update(s.rows, lineKey(model),
		below(notBeforeKey, until),
		set(notBeforeKey, int64(until)),
	))
	if _, is := refused(err); is {
		return nil // a longer one stands
	}
	return named("penalise "+model, explain(ctx, err))
}
