package pipelinetest

import (
	"reflect"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

var limitPromises = []promise{
	{"the limiter lets a burst start at once and then one after the other", slotsInLine},
	{"a slot beyond the horizon is not taken", slotBeyondHorizon},
	{"a cost of less than a millisecond is not free", slotRoundsUp},
	{"a refund gives back, never below now - burst", refundIsBounded},
	{"a penalty is never shortened, and refunds do not move it", penaltyHolds},
	{"one task alone does not open a breaker, a second within the window does", breakerNeedsTwo},
	{"a strike can open a breaker at once", breakerAtOnce},
	{"an open breaker is never shortened, and names few tasks", breakerIsNotShortened},
	{"a success closes a breaker", breakerCloses},
	{"each model has its own limiter and breaker", modelsAreApart},
}

const (
	second = time.Second
	burst  = 3 * time.Second
)

func slot(b *bench, now pipeline.Instant, cost time.Duration) pipeline.SlotWrite {
	return pipeline.SlotWrite{Model: string(b.job), Cost: cost, Burst: burst, Horizon: 5 * second, Now: now}
}

func (b *bench) takes(now pipeline.Instant, cost time.Duration, want pipeline.Instant) {
	b.Helper()
	got, err := b.Store.TakeSlot(b.ctx, slot(b, now, cost))
	if err != nil || got != want {
		b.Errorf("a slot of %v at %s: got start %s, error %v; want %s", cost, now, got, err, want)
	}
}

func slotsInLine(t *testing.T, h Harness) {
	b := newBench(t, h)
	for range 3 { // the line lies three seconds in the past
		b.takes(T0, second, T0)
	}
	b.takes(T0, second, T0)
	b.takes(T0, second, T0.Add(second))
	b.takes(T0, 2*second, T0.Add(2*second))
	b.takes(T0, second, T0.Add(4*second))
	b.takes(T0.Add(4*second), second, T0.Add(5*second))
	b.takes(T0.Add(time.Hour), 4*second, T0.Add(time.Hour)) // an idle line lies no more than the burst in the past
	b.takes(T0.Add(time.Hour), second, T0.Add(time.Hour+second))
}

func slotBeyondHorizon(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.takes(T0, burst+5*second, T0)
	b.takes(T0, 1*time.Millisecond, T0.Add(5*second)) // just on the horizon
	for range 2 {
		_, err := h.Store.TakeSlot(b.ctx, slot(b, T0, second))
		b.fails(err, pipeline.ErrBusy)
	}
	b.takes(T0+1, second, T0.Add(5*second)+1) // nothing was taken by those
}

func slotRoundsUp(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.takes(T0, burst, T0)
	b.takes(T0, 100*time.Microsecond, T0)
	b.takes(T0, 1100*time.Microsecond, T0+1)
	b.takes(T0, second, T0+3)
}

func refundIsBounded(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.must(h.Store.Refund(b.ctx, string(b.job), second, burst, T0)) // of a line that nobody used
	b.takes(T0, burst+4*second, T0)
	b.must(h.Store.Refund(b.ctx, string(b.job), 3*second, burst, T0))
	b.takes(T0, second, T0.Add(second))
	b.must(h.Store.Refund(b.ctx, string(b.job), time.Hour, burst, T0))
	b.takes(T0, burst, T0)
	b.takes(T0, second, T0) // three seconds of burst were free, and no more
	b.takes(T0, second, T0.Add(second))
	b.must(h.Store.Refund(b.ctx, string(b.job), second, burst, T0.Add(time.Hour))) // never moves the line on
	b.takes(T0, second, T0.Add(2*second))
}

func penaltyHolds(t *testing.T, h Harness) {
	b := newBench(t, h)
	until := T0.Add(3 * second)
	b.must(h.Store.Penalise(b.ctx, string(b.job), until))
	b.must(h.Store.Penalise(b.ctx, string(b.job), T0.Add(second)))
	b.takes(T0, second, until)
	b.must(h.Store.Refund(b.ctx, string(b.job), time.Hour, burst, T0))
	b.takes(T0, second, until)
	b.takes(T0, second, until.Add(second))
	b.must(h.Store.Penalise(b.ctx, string(b.job), T0.Add(4*second)))
	b.takes(T0, second, T0.Add(5*second)) // the line had come so far
	b.must(h.Store.Penalise(b.ctx, string(b.job), T0.Add(time.Hour)))
	_, err := h.Store.TakeSlot(b.ctx, slot(b, T0, second))
	b.fails(err, pipeline.ErrBusy)
}

func (b *bench) strikes(task int, now pipeline.Instant, edits ...func(*pipeline.Strike)) pipeline.Cooldown {
	b.Helper()
	s := pipeline.Strike{
		Model: string(b.job), Task: pipeline.Ref{Job: b.job, ID: pipeline.WorkTask(task)},
		Reason: pipeline.Fail(pipeline.Unavailable, "of task %d", task), Now: now, Window: time.Minute, Until: now.Add(30 * second),
	}
	for _, edit := range edits {
		edit(&s)
	}
	got, err := b.Store.Strike(b.ctx, s)
	b.must(err)
	stored, err := b.Store.Cooldown(b.ctx, s.Model)
	b.must(err)
	if !reflect.DeepEqual(got, stored) {
		b.Errorf("got %s, and %s is stored", pipeline.Encode(got), pipeline.Encode(stored))
	}
	return got
}

func breakerNeedsTwo(t *testing.T, h Harness) {
	b := newBench(t, h)
	none, err := h.Store.Cooldown(b.ctx, string(b.job))
	if err != nil || !reflect.DeepEqual(none, pipeline.Cooldown{}) {
		t.Errorf("never struck: got %s, error %v; want nothing", pipeline.Encode(none), err)
	}
	for n := range 3 {
		c := b.strikes(1, T0.Add(time.Duration(n)*second))
		if c.IsOpen(T0) || len(c.Strikes) != 1 || c.Since != T0 {
			t.Errorf("one task struck %d times: got %s, want it closed", n+1, pipeline.Encode(c))
		}
	}
	c := b.strikes(2, T0.Add(time.Minute)) // the last moment of the window
	if c.Until != T0.Add(90*second) || c.Reason.Cause != "of task 2" || len(c.Strikes) != 2 || c.Since != T0 {
		t.Errorf("a second task struck: got %s, want it open until %s", pipeline.Encode(c), T0.Add(90*second))
	}
	if !c.IsOpen(c.Until-1) || c.IsOpen(c.Until) {
		t.Error("a breaker is open until its time, and no longer")
	}
	b.run("later than the window it does not", func(b *bench) {
		b.strikes(1, T0)
		c := b.strikes(2, T0.Add(time.Minute)+1)
		if c.Until != 0 || len(c.Strikes) != 1 || c.Since != T0.Add(time.Minute)+1 {
			b.Errorf("got %s, want another window", pipeline.Encode(c))
		}
	})
}

func breakerAtOnce(t *testing.T, h Harness) {
	b := newBench(t, h)
	c := b.strikes(1, T0, func(s *pipeline.Strike) { s.Open, s.Until = true, T0.Add(time.Hour) })
	if c.Until != T0.Add(time.Hour) || c.Reason.Cause != "of task 1" {
		t.Errorf("got %s, want it open for an hour", pipeline.Encode(c))
	}
}

func breakerIsNotShortened(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.strikes(1, T0, func(s *pipeline.Strike) { s.Open, s.Until = true, T0.Add(time.Hour) })
	c := b.strikes(2, T0)
	if c.Until != T0.Add(time.Hour) {
		t.Errorf("got open until %s, want %s", c.Until, T0.Add(time.Hour))
	}
	for n := range 40 {
		c = b.strikes(n, T0)
	}
	if len(c.Strikes) != pipeline.MaxStrikes {
		t.Errorf("got %d tasks named, want %d", len(c.Strikes), pipeline.MaxStrikes)
	}
}

func breakerCloses(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.must(h.Store.CloseBreaker(b.ctx, string(b.job)))
	b.strikes(1, T0)
	b.strikes(2, T0)
	b.must(h.Store.CloseBreaker(b.ctx, string(b.job)))
	c, err := h.Store.Cooldown(b.ctx, string(b.job))
	if err != nil || !reflect.DeepEqual(c, pipeline.Cooldown{}) {
		t.Errorf("got %s, error %v; want nothing", pipeline.Encode(c), err)
	}
	if c := b.strikes(2, T0); c.IsOpen(T0) {
		t.Error("a strike from before the success still counts")
	}
}

func modelsAreApart(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.strikes(1, T0, func(s *pipeline.Strike) { s.Open = true })
	b.must(h.Store.Penalise(b.ctx, string(b.job), T0.Add(time.Hour)))
	w := slot(b, T0, second)
	w.Model += "-other"
	start, err := h.Store.TakeSlot(b.ctx, w)
	if err != nil || start != T0 {
		t.Errorf("got start %s, error %v; want %s", start, err, T0)
	}
	c, err := h.Store.Cooldown(b.ctx, w.Model)
	if err != nil || c.IsOpen(T0) {
		t.Errorf("got %s, error %v; want it closed", pipeline.Encode(c), err)
	}
	b.must(h.Store.CloseBreaker(b.ctx, w.Model))
	c, err = h.Store.Cooldown(b.ctx, string(b.job))
	if err != nil || !c.IsOpen(T0) {
		t.Errorf("got %s, error %v; want it open", pipeline.Encode(c), err)
	}
}
