package function

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/telemetry"
)

// sweepMargin is what is left of an event's time when its sweep ends: for the row in hand.
const sweepMargin = 10 * time.Second

// HandleSchedule sweeps once, in the time that the event has. What it does not get to, the next one does.
func (p *Process) HandleSchedule(ctx context.Context, _ events.EventBridgeEvent) error {
	defer p.Event()()
	defer p.telling(ctx)()
	within := config.ReapTimeout - sweepMargin
	if deadline, has := ctx.Deadline(); has {
		within = pipeline.At(deadline).Sub(p.Clock.Now()) - sweepMargin
	}
	if within <= 0 {
		return fmt.Errorf("this event has less than %v: nothing was swept. Set the function's time-out to %v", sweepMargin, config.ReapTimeout)
	}
	return p.sweep(ctx, within)
}

// sweep sweeps once and counts that it went through.
func (p *Process) sweep(ctx context.Context, within time.Duration) error {
	report, err := p.System.Reaper.SweepWithin(ctx, within)
	var attrs []slog.Attr
	for _, did := range slices.Sorted(maps.Keys(report)) {
		attrs = append(attrs, slog.Int(did, report[did]))
	}
	if len(attrs) > 0 {
		p.Log.LogAttrs(ctx, slog.LevelInfo, "swept", attrs...)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	p.Meter.Add(telemetry.Sweeps, 1)
	return nil
}
