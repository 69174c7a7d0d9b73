package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// The line is the latest of what is stored, now - burst and the penalty. A model without a row has an empty line.
const takeSlot = `INSERT INTO limits (model, arrival) VALUES (:model, :now - :burst + :cost)
ON CONFLICT (model) DO UPDATE
SET arrival = :cost + MAX(
	COALESCE(arrival, 0),
	:now - :burst,
	COALESCE(not_before, 0))
WHERE COALESCE(arrival, 0) <= :now + :horizon
	AND COALESCE(not_before, 0) <= :now + :horizon
RETURNING arrival - :cost`

// TakeSlot reserves cost on the model's line.
func (s *Store) TakeSlot(ctx context.Context, w pipeline.SlotWrite) (start pipeline.Instant, err error) {
	err = s.write(ctx, func(tx *tx) error {
		err := tx.row(takeSlot, sql.Named("model", w.Model), sql.Named("now", w.Now),
			sql.Named("burst", w.Burst.Milliseconds()), sql.Named("cost", upMillis(w.Cost)), sql.Named("horizon", w.Horizon.Milliseconds())).Scan(&start)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: the line of the model is longer than %v", pipeline.ErrBusy, w.Horizon)
		}
		return err
	})
	if err != nil {
		return 0, named("take a slot of "+w.Model, err)
	}
	return max(start, w.Now), nil
}

// upMillis is d in milliseconds, rounded up: a line must not be faster than its quota.
func upMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

const refund = `UPDATE limits
SET arrival = MIN(arrival, MAX(arrival - :unused, :now - :burst))
WHERE model = :model`

// Refund gives back what was not used. It never raises the line.
func (s *Store) Refund(ctx context.Context, model string, unused, burst time.Duration, now pipeline.Instant) error {
	return named("refund to "+model, s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(refund, sql.Named("model", model), sql.Named("unused", unused.Milliseconds()),
			sql.Named("burst", burst.Milliseconds()), sql.Named("now", now))
		return err
	}))
}

const penalise = `INSERT INTO limits (model, not_before) VALUES (:model, :until)
ON CONFLICT (model) DO UPDATE
SET not_before = MAX(COALESCE(not_before, :until), :until)`

// Penalise lets nothing start before until.
func (s *Store) Penalise(ctx context.Context, model string, until pipeline.Instant) error {
	return named("penalise "+model, s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(penalise, sql.Named("model", model), sql.Named("until", until))
		return err
	}))
}

// Strike counts a failure of the model against its breaker.
func (s *Store) Strike(ctx context.Context, strike pipeline.Strike) (cooldown pipeline.Cooldown, err error) {
	err = s.write(ctx, func(tx *tx) error {
		stands, err := decodeRow[pipeline.Cooldown](tx.row(`SELECT body FROM cooldowns WHERE model = ?`, strike.Model))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		cooldown = stands.Struck(strike)
		_, err = tx.exec(`INSERT INTO cooldowns (model, body) VALUES (?, ?)
ON CONFLICT (model) DO UPDATE SET body = excluded.body`, strike.Model, text(cooldown))
		return err
	})
	return cooldown, named("strike "+strike.Model, err)
}

// Cooldown is the breaker as it stands.
func (s *Store) Cooldown(ctx context.Context, model string) (cooldown pipeline.Cooldown, err error) {
	err = s.one(ctx, func(row scanner) (err error) {
		cooldown, err = decodeRow[pipeline.Cooldown](row)
		return err
	}, `SELECT body FROM cooldowns WHERE model = ?`, model)
	if errors.Is(err, pipeline.ErrNotFound) {
		return pipeline.Cooldown{}, nil
	}
	return cooldown, named("cooldown of "+model, err)
}

// CloseBreaker forgets the strikes.
func (s *Store) CloseBreaker(ctx context.Context, model string) error {
	return named("close the breaker of "+model, s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(`DELETE FROM cooldowns WHERE model = ?`, model)
		return err
	}))
}
