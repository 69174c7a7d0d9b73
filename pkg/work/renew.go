package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// keep renews the claim until ctx is done, and flushes the journal so that a kill costs at most RenewEvery of it.
// It stops when the attempt makes no progress: a claim is kept by work, not by being alive.
func (a *attempt) keep(ctx context.Context) {
	p, clock := a.w.cfg.Policy, a.w.clock
	wait := p.RenewEvery
	for clock.Sleep(ctx, wait) == nil {
		a.mu.Lock()
		idle := clock.Mono() - a.progress
		lapsed := clock.Now() > a.wall || clock.Mono() > a.mono
		a.mu.Unlock()
		if idle >= p.StallTimeout {
			a.halt(pipeline.ErrStalled)
			return
		}
		if lapsed {
			a.halt(pipeline.ErrClaimLost)
			return
		}
		err := errors.Join(a.flush(ctx), a.renew(ctx))
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, pipeline.ErrFenced):
			return
		case err != nil: // the claim's own clock ends it if this goes on
			a.w.cfg.Log.WarnContext(ctx, "renewal failed", "task", a.claim.Ref.String(), "error", err)
			wait = p.RenewEvery / 5
		default:
			wait = p.RenewEvery
		}
	}
}

// renewing waits until nobody else renews the claim.
func (a *attempt) renewing(ctx context.Context) error {
	select {
	case a.renewal <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *attempt) renew(ctx context.Context) error {
	if err := a.renewing(ctx); err != nil {
		return err
	}
	defer func() { <-a.renewal }()
	a.mu.Lock()
	allowed := a.claim.Allowed
	a.mu.Unlock()
	return a.renewTo(ctx, allowed)
}

// renewTo renews the claim and sets the tries allowed. The caller holds a.renewal.
func (a *attempt) renewTo(ctx context.Context, allowed int) error {
	p, clock := a.w.cfg.Policy, a.w.clock
	now, began := clock.Now(), clock.Mono()
	a.mu.Lock()
	write := pipeline.RenewWrite{
		Fence: a.claim.Fence(), Expires: max(now.Add(p.ClaimTTL), a.wall+1),
		Stage: a.stage, StageAt: a.stageAt, Answers: a.answers, Allowed: allowed,
	}
	a.mu.Unlock()
	err := a.w.persist(ctx, func() error {
		_, err := a.w.cfg.Store.Renew(ctx, write)
		return err
	})
	old, refused := pipeline.Old(err)
	switch {
	case err == nil:
		a.extend(write.Expires, began, allowed)
		return nil
	case refused && holds(old, write.Fence):
		// Our own first copy got there. It lasts until the earlier of the expiry shown and our own reckoning.
		a.extend(min(old.ExpiresAt, write.Expires), began, old.Allowed)
		if old.Allowed < allowed {
			return fmt.Errorf("renew %s: an earlier renewal came first: %w", a.claim.Ref, pipeline.ErrBusy)
		}
		return nil
	case refused:
		a.halt(pipeline.ErrClaimLost)
	}
	return fmt.Errorf("renew %s: %w", a.claim.Ref, err)
}

// holds says that the row is still claimed under the fence.
func holds(row *pipeline.Task, f pipeline.Fence) bool {
	return row != nil && row.Status == pipeline.TaskClaimed && row.Generation == f.Generation && row.ClaimID == f.ClaimID
}

// extend trusts the claim until wall. By the monotonic clock that is no longer than the stored expiry has moved on: a
// wall clock that was set back moves it by next to nothing.
func (a *attempt) extend(wall pipeline.Instant, began time.Duration, allowed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mono = min(began+a.w.cfg.Policy.ClaimTTL, a.mono+wall.Sub(a.wall))
	a.wall, a.claim.Allowed = wall, max(a.claim.Allowed, allowed) // an acceptance may have allowed more meanwhile
	a.claim.ExpiresAt = wall
}
