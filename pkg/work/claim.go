package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// claimRounds bounds how often one delivery tries to claim: the row moved, an expired claim was in the way.
const claimRounds = 4

// storeTries bounds how often a write that the store was too busy for is sent again before it is left to the reaper.
const storeTries = 6

// endTries is the same for the writes that end an attempt: longer, about as long as the claim lasts without renewals,
// since an end that is not written looks like a loss.
const endTries = 8

// claimed is a claim and when, by both clocks, it can be trusted no longer.
type claimed struct {
	pipeline.Claim
	wall pipeline.Instant
	mono time.Duration
}

// refusal is why there is no claim, with the row that said so.
type refusal struct {
	why pipeline.Refusal
	row *pipeline.Task
}

// errUnsure says that the store was busy to the end: a claim may have landed, and lapses if it did.
var errUnsure = errors.New("the store was busy; whether the claim landed is not known")

// claim claims the row of a message. Exactly one of claim and refusal is set, unless there is an error.
func (w *Worker) claim(ctx context.Context, source int, m pipeline.Message) (c *claimed, r *refusal, done func(), err error) {
	seen, done := m.Generation, func() {}
	defer func() {
		if p := recover(); p != nil {
			done() // or this worker would be alone for ever
			panic(p)
		}
	}()
	alone := false
	for range claimRounds {
		asked := w.clock.Now()
		c, row, err := w.claimOnce(ctx, m.Ref(), seen, alone)
		if err != nil || c != nil {
			return c, nil, done, err
		}
		write := pipeline.ClaimWrite{MaxAttempts: w.cfg.Policy.MaxAttempts, Now: w.clock.Now(), Alone: alone}
		why := pipeline.WhyRefused(row, write)
		expire := pipeline.ExpireWrite{Now: asked, MaxSkew: w.cfg.Policy.MaxSkew}
		switch {
		case why == pipeline.RefusedMoved:
			seen = row.Generation
		case why == pipeline.RefusedHeld && row.Expirable(expire):
			if _, err := w.cfg.Reaper.Expire(ctx, *row, asked); err != nil && !errors.Is(err, pipeline.ErrFenced) {
				return nil, nil, done, fmt.Errorf("expire the claim in the way: %w", err)
			}
			seen = row.Generation
		case why == pipeline.RefusedAlone:
			release, err := w.crew.lone(ctx, w.jobs.drain, source)
			if err != nil {
				return nil, nil, done, err
			}
			seen, alone, done = row.Generation, true, release
		default:
			return nil, &refusal{why, row}, done, nil
		}
	}
	return nil, &refusal{why: pipeline.RefusedHeld}, done, nil // it moves too fast: look again later
}

// claimOnce sends one claim, the same again when the store was busy. A claim whose answer was lost is recognised by
// its id in the row that refuses the second sending.
func (w *Worker) claimOnce(ctx context.Context, ref pipeline.Ref, seen int64, alone bool) (*claimed, *pipeline.Task, error) {
	p := w.cfg.Policy
	now, began := w.clock.Now(), w.clock.Mono()
	write := pipeline.ClaimWrite{
		Ref: ref, Seen: seen, MaxAttempts: p.MaxAttempts, Worker: w.cfg.Worker, ClaimID: w.cfg.NewID(), Alone: alone,
		Now: now, Expires: now.Add(p.ClaimTTL), Due: now.Add(p.ClaimTTL + p.MaxSkew),
	}
	mine := func(row pipeline.Task) *claimed {
		return &claimed{Claim: pipeline.Claim{Task: row}, wall: write.Expires, mono: began + p.ClaimTTL}
	}
	for n := range storeTries {
		if n > 0 {
			if err := w.clock.Sleep(ctx, p.RenewEvery/50<<(n-1)); err != nil {
				return nil, nil, err
			}
		}
		row, err := w.cfg.Store.Claim(ctx, write)
		if err == nil {
			return mine(row), nil, nil
		}
		old, refused := pipeline.Old(err)
		switch {
		case refused && write.Landed(old, w.clock.Mono()-began, p):
			return mine(*old), nil, nil
		case refused:
			return nil, old, nil
		case !errors.Is(err, pipeline.ErrBusy) && !errors.Is(err, pipeline.ErrConflict):
			return nil, nil, fmt.Errorf("claim %s: %w", ref, err)
		}
	}
	return nil, nil, fmt.Errorf("claim %s: %w", ref, errUnsure)
}
