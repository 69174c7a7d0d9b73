package memory

import (
	"context"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// line is a model's limiter: when the next unit of work arrives in theory, and before when nothing may start.
type line struct {
	arrival   pipeline.Instant
	notBefore pipeline.Instant
}

// TakeSlot reserves cost on the model's line.
func (s *Store) TakeSlot(ctx context.Context, w pipeline.SlotWrite) (pipeline.Instant, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	l := s.lines[w.Model]
	arrival := max(l.arrival, w.Now.Add(-w.Burst), l.notBefore)
	start := max(arrival, w.Now)
	if start > w.Now.Add(w.Horizon) {
		return 0, fmt.Errorf("the line of %s is full until %s: %w", w.Model, start, pipeline.ErrBusy)
	}
	l.arrival = arrival.Add(w.Cost + time.Millisecond - 1)
	s.lines[w.Model] = l
	return start, nil
}

// Refund gives back what was not used. It never raises the line.
func (s *Store) Refund(ctx context.Context, model string, unused, burst time.Duration, now pipeline.Instant) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	l := s.lines[model]
	l.arrival = min(l.arrival, max(l.arrival.Add(-unused), now.Add(-burst)))
	s.lines[model] = l
	return nil
}

// Penalise lets nothing start before until.
func (s *Store) Penalise(ctx context.Context, model string, until pipeline.Instant) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	l := s.lines[model]
	l.notBefore = max(l.notBefore, until)
	s.lines[model] = l
	return nil
}

// Strike counts a failure of the model against its breaker.
func (s *Store) Strike(ctx context.Context, strike pipeline.Strike) (pipeline.Cooldown, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Cooldown{}, err
	}
	defer s.mu.Unlock()
	c := s.cooldowns[strike.Model].Struck(strike)
	s.cooldowns[strike.Model] = c
	return c, nil
}

// Cooldown reads the breaker.
func (s *Store) Cooldown(ctx context.Context, model string) (pipeline.Cooldown, error) {
	if err := s.enter(ctx); err != nil {
		return pipeline.Cooldown{}, err
	}
	defer s.mu.Unlock()
	return s.cooldowns[model], nil
}

// CloseBreaker forgets the strikes.
func (s *Store) CloseBreaker(ctx context.Context, model string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	delete(s.cooldowns, model)
	return nil
}
