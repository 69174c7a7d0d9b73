package pipeline

import (
	"errors"
	"fmt"
	"time"
)

// Policy is every number about retrying, giving up and time. Workers read it, and so does what deploys them.
// [Policy.Validate] checks each inequality that the protocol rests on.
type Policy struct {
	// Tier one: one call, inside one attempt.
	MaxTries    int           `json:"max_tries"`    // tries of a call in one attempt, the first included
	TryBackoff  time.Duration `json:"try_backoff"`  // before the second try; doubles; full jitter
	RetryWait   time.Duration `json:"retry_wait"`   // all waiting of one call in one attempt
	MaxReasks   int           `json:"max_reasks"`   // of a malformed answer, within MaxTries
	CallTimeout time.Duration `json:"call_timeout"` // of one try

	ReplyFresh time.Duration `json:"reply_fresh"` // stored replies are read again before a try once the last reading is older

	// The model's door, shared by all workers.
	BreakerWindow time.Duration `json:"breaker_window"` // strikes of two tasks within it open the breaker
	BreakerOpen   time.Duration `json:"breaker_open"`   // how long it stays open when the failure states no time
	BreakerFresh  time.Duration `json:"breaker_fresh"`  // a process reads it again once its last reading is older
	ThrottlePause time.Duration `json:"throttle_pause"` // of everybody, after a throttle that states no time
	LimiterBurst  time.Duration `json:"limiter_burst"`  // how far the limiter's line may lie in the past
	LimiterAhead  time.Duration `json:"limiter_ahead"`  // how far in the future a try may be booked

	// Tier two: one task.
	MaxAttempts     int           `json:"max_attempts"`     // per stage
	AttemptBackoff  time.Duration `json:"attempt_backoff"`  // after the first failed attempt; doubles
	AttemptTimeout  time.Duration `json:"attempt_timeout"`  // of one attempt
	StallTimeout    time.Duration `json:"stall_timeout"`    // an attempt without progress for so long stops renewing
	MaxDeferrals    int           `json:"max_deferrals"`    // of a task
	DeferralBackoff time.Duration `json:"deferral_backoff"` // after the first; doubles
	DeferralLimit   time.Duration `json:"deferral_limit"`   // its longest
	MaxReceives     int           `json:"max_receives"`     // of a message before the queue dead-letters it
	JobDeadline     time.Duration `json:"job_deadline"`     //
	MaxJobClaims    int           `json:"max_job_claims"`   // claims that one job may hold at once

	// Claims.
	ClaimTTL   time.Duration `json:"claim_ttl"`
	RenewEvery time.Duration `json:"renew_every"`
	MaxSkew    time.Duration `json:"max_skew"`  // between any worker's clock and the store's
	JobPoll    time.Duration `json:"job_poll"`  // how often a worker reads a job it works on
	JobFresh   time.Duration `json:"job_fresh"` // no try is sent on a reading older than this

	// The reaper.
	MaxRings  int           `json:"max_rings"`  // then a row is shown as unclaimable
	RingDelay time.Duration `json:"ring_delay"` // before the second ring; doubles
	RingLimit time.Duration `json:"ring_limit"` // its longest

	DeadLetterRetention time.Duration `json:"dead_letter_retention"`
	Retention           time.Duration `json:"retention"` // of checkpoints, from the job's end, and of replies, from their last use
}

// DefaultPolicy is what ships.
func DefaultPolicy() Policy {
	return Policy{
		MaxTries:    4,
		TryBackoff:  time.Second,
		RetryWait:   30 * time.Second,
		MaxReasks:   2,
		CallTimeout: 100 * time.Second,
		ReplyFresh:  5 * time.Second,

		BreakerWindow: time.Minute,
		BreakerOpen:   30 * time.Second,
		BreakerFresh:  time.Second,
		ThrottlePause: 2 * time.Second,
		LimiterBurst:  10 * time.Second,
		LimiterAhead:  20 * time.Second,

		MaxAttempts:     3,
		AttemptBackoff:  30 * time.Second,
		AttemptTimeout:  5 * time.Minute,
		StallTimeout:    2 * time.Minute,
		MaxDeferrals:    60,
		DeferralBackoff: 30 * time.Second,
		DeferralLimit:   30 * time.Minute,
		MaxReceives:     5,
		JobDeadline:     24 * time.Hour,
		MaxJobClaims:    200,

		ClaimTTL:   20 * time.Second,
		RenewEvery: 5 * time.Second,
		MaxSkew:    5 * time.Second,
		JobPoll:    500 * time.Millisecond,
		JobFresh:   1500 * time.Millisecond,

		MaxRings:  20,
		RingDelay: time.Minute,
		RingLimit: 15 * time.Minute,

		DeadLetterRetention: 14 * 24 * time.Hour,
		Retention:           90 * 24 * time.Hour,
	}
}

// What no number of a policy needs to pass: with more, sums of them would not be numbers any more.
const (
	maxCount = 10_000
	maxWait  = 366 * 24 * time.Hour
)

// Validate checks every inequality and names both sides of each that does not hold.
func (p Policy) Validate() error {
	var errs []error
	less := func(a time.Duration, left string, b time.Duration, right, why string) {
		if a >= b {
			errs = append(errs, fmt.Errorf("%s (%v) must be less than %s (%v): %s", left, a, right, b, why))
		}
	}
	atLeast := func(name string, got, want int) {
		if got < want || got > maxCount {
			errs = append(errs, fmt.Errorf("%s (%d) must be at least %d, and at most %d", name, got, want, maxCount))
		}
	}
	positive := func(name string, d time.Duration) {
		if d <= 0 || d > maxWait {
			errs = append(errs, fmt.Errorf("%s (%v) must be more than 0, and at most %v", name, d, maxWait))
		}
	}
	notNegative := func(name string, d time.Duration) {
		if d != 0 {
			positive(name, d)
		}
	}
	atLeast("max_tries", p.MaxTries, 1)
	atLeast("max_reasks", p.MaxReasks, 0)
	atLeast("max_attempts", p.MaxAttempts, 1)
	atLeast("max_deferrals", p.MaxDeferrals, 0)
	atLeast("max_receives", p.MaxReceives, 1)
	atLeast("max_rings", p.MaxRings, 1)
	atLeast("max_job_claims", p.MaxJobClaims, 1)
	positive("try_backoff", p.TryBackoff)
	positive("attempt_backoff", p.AttemptBackoff)
	positive("deferral_backoff", p.DeferralBackoff)
	positive("ring_delay", p.RingDelay)
	positive("renew_every", p.RenewEvery)
	positive("max_skew", p.MaxSkew)
	positive("job_poll", p.JobPoll)
	positive("call_timeout", p.CallTimeout)
	positive("reply_fresh", p.ReplyFresh)
	positive("breaker_open", p.BreakerOpen)
	positive("breaker_fresh", p.BreakerFresh)
	positive("throttle_pause", p.ThrottlePause)
	positive("limiter_burst", p.LimiterBurst)
	positive("breaker_window", p.BreakerWindow)
	positive("attempt_timeout", p.AttemptTimeout)
	positive("stall_timeout", p.StallTimeout)
	positive("deferral_limit", p.DeferralLimit)
	positive("claim_ttl", p.ClaimTTL)
	positive("job_fresh", p.JobFresh)
	positive("ring_limit", p.RingLimit)
	positive("dead_letter_retention", p.DeadLetterRetention)
	positive("retention", p.Retention)
	notNegative("retry_wait", p.RetryWait)
	notNegative("limiter_ahead", p.LimiterAhead)
	notNegative("job_deadline", p.JobDeadline)
	less(p.MaxSkew, "max_skew", p.ClaimTTL-p.RenewEvery, "claim_ttl - renew_every", "a renewal must land before a reaper with a skewed clock may expire the claim")
	less(p.RenewEvery+p.OwnMargin(), "renew_every + a tenth of it", p.ClaimTTL, "claim_ttl", "a worker must trust its own claim until it has renewed it")
	less(p.JobPoll, "job_poll", p.JobFresh, "job_fresh", "a reading must be fresh until the next one")
	less(p.JobFresh, "job_fresh", 2*time.Second, "2s", "no call may start later than 2 s after a cancel")
	less(p.CallTimeout, "call_timeout", p.StallTimeout, "stall_timeout", "a slow call is not a stalled attempt")
	less(p.StallTimeout, "stall_timeout", p.AttemptTimeout, "attempt_timeout", "a stall is noticed before the attempt's time is over")
	less(p.CallTimeout+p.RetryWait, "call_timeout + retry_wait", p.AttemptTimeout, "attempt_timeout", "a call must be able to finish in one attempt")
	less(p.BreakerOpen, "breaker_open", p.BreakerWindow, "breaker_window", "the tasks that probe when it closes must still count as striking together")
	less(p.BreakerFresh, "breaker_fresh", p.BreakerOpen, "breaker_open", "every process must hear of an open breaker before it closes")
	less(p.LimiterAhead, "limiter_ahead", p.StallTimeout, "stall_timeout", "a try that waits for its turn is not a stalled attempt")
	less(p.DeferralBackoff-1, "deferral_backoff", p.DeferralLimit, "deferral_limit", "the waits grow")
	less(p.RingDelay-1, "ring_delay", p.RingLimit, "ring_limit", "the waits grow")
	less(p.JobDeadline, "job_deadline", p.DeadLetterRetention, "dead_letter_retention", "a dead letter must outlive its job")
	less(p.JobDeadline, "job_deadline", p.Retention/2, "half of retention", "a reply that is used must outlive the job that uses it")
	less(p.DeadLetterRetention, "dead_letter_retention", p.Retention, "retention", "whoever reads a dead letter may redrive its task")
	if p.MaxReceives <= p.MaxAttempts {
		errs = append(errs, fmt.Errorf("max_receives (%d) must be more than max_attempts (%d): the row gives up, not the queue", p.MaxReceives, p.MaxAttempts))
	}
	if sum := p.deferralSum(); sum < p.JobDeadline {
		errs = append(errs, fmt.Errorf("the waits of max_deferrals (%d) deferrals, %v in all, must outlast job_deadline (%v): an outage must not use up a task before its deadline", p.MaxDeferrals, sum, p.JobDeadline))
	}
	return errors.Join(errs...)
}

func (p Policy) deferralSum() time.Duration {
	var sum time.Duration
	for n := range min(p.MaxDeferrals, maxCount) {
		sum += doubled(p.DeferralBackoff, p.DeferralLimit, n)
		if sum > maxWait { // longer than any job
			break
		}
	}
	return sum
}

// doubled is first x 2^n, at most limit.
func doubled(first, limit time.Duration, n int) time.Duration {
	wait := first
	for range n {
		if wait >= limit {
			break
		}
		wait *= 2
	}
	return min(wait, limit)
}

// TryWait is how long to wait before try n+1 of a call, n >= 1; jitter in [0,1) is full jitter.
func (p Policy) TryWait(n int, jitter float64) time.Duration {
	return time.Duration(jitter * float64(doubled(p.TryBackoff, p.RetryWait, n-1)))
}

// AttemptWait is how long a task waits after its nth counted attempt, n >= 1; jitter in [0,1) adds up to a fifth.
func (p Policy) AttemptWait(n int, jitter float64) time.Duration {
	return Spread(doubled(p.AttemptBackoff, p.DeferralLimit, n-1), jitter)
}

// DeferralWait is how long a task waits after its nth deferral, n >= 1. Jitter only lengthens it.
func (p Policy) DeferralWait(n int, jitter float64) time.Duration {
	return Spread(doubled(p.DeferralBackoff, p.DeferralLimit, n-1), jitter)
}

// RingWait is how long the reaper waits after the nth ring since the last claim, n >= 0.
func (p Policy) RingWait(n int) time.Duration { return doubled(p.RingDelay, p.RingLimit, n) }

// Spread lengthens a wait that many may have been told at once, by up to a fifth: nobody comes early, not all together.
func Spread(wait time.Duration, jitter float64) time.Duration {
	return wait + time.Duration(jitter*float64(wait)/5)
}

// TriesPerCell is how often one cell may ever be tried: the 12 of "cells x 12".
func (p Policy) TriesPerCell() int { return p.MaxTries * p.MaxAttempts }

// TryCap is how many tries a task with so many cells may ever be allowed.
func (p Policy) TryCap(cells int) int { return cells * p.TriesPerCell() }

// Block is how many tries one write allows a task with so many cells: small enough that the blocks of lost attempts
// (at most one each, of at most MaxDeferrals or as many as there are cells, and of MaxAttempts in any case) use up no
// more than half the cap.
func (p Policy) Block(cells int) int {
	lost := max(p.MaxAttempts, min(p.MaxDeferrals, cells))
	return max(1, p.TryCap(cells)/2/lost)
}

// WorstCase is the most that a job can cost when one try of every cell, each at its dearest, costs that much. It holds
// whatever happens, because it is the ceiling that the budget enforces.
func (p Policy) WorstCase(dearest Money) Money { return Money(p.TriesPerCell()) * dearest }

// Visibility is how long a delivery stays invisible: set once, to outlast the attempt.
func (p Policy) Visibility() time.Duration { return p.AttemptTimeout + p.AttemptTimeout/5 }

// HeldWait is when a delivery whose row another worker holds is worth another look: when that attempt must be over.
func (p Policy) HeldWait(row Task, now Instant) time.Duration {
	return max(10*time.Second, row.ClaimedAt.Add(p.AttemptTimeout).Sub(now))
}

// OwnMargin is how long before its expiry a worker no longer trusts its own claim.
func (p Policy) OwnMargin() time.Duration { return p.RenewEvery / 10 }
