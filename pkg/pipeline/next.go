package pipeline

import "time"

// Outcome is how an attempt ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded" // every stage is accepted
	FailedNow Outcome = "failed"    // try again later, if attempts are left
	Deferral  Outcome = "deferred"  // through no fault of the task
	Permanent Outcome = "permanent" // trying again can never help
	Stopped   Outcome = "stopped"   // cancelled
	Parked    Outcome = "parked"    // the job is paused or not started
	Died      Outcome = "lost"      // the worker died
	Overran   Outcome = "timed_out" // the attempt's time is over, or it stalled
)

// Ending is what is known when an attempt ends.
type Ending struct {
	Outcome    Outcome       `json:"outcome"`
	Failure    Failure       `json:"failure,omitzero"`
	RetryAfter time.Duration `json:"retry_after,omitempty"` // what the cause asked for, e.g. a provider's Retry-After
}

// EndingOf is the ending that a failure leads to.
func EndingOf(f Failure, retryAfter time.Duration) Ending {
	outcome := FailedNow
	switch {
	case f.None():
		outcome = Succeeded
	case f.Kind == Cancelled:
		outcome = Stopped
	case f.Kind == Paused:
		outcome = Parked
	case f.Kind == Lost:
		outcome = Died
	case f.Kind == TimedOut:
		outcome = Overran
	case f.Kind.Deferred():
		outcome = Deferral
	case f.Kind == Exhausted || f.Kind.CellFails():
		outcome = Permanent
	}
	return Ending{Outcome: outcome, Failure: f, RetryAfter: retryAfter}
}

// Standing is where a task stands when its attempt ends: the counters as of the claim or of its last accepted
// checkpoint, never those of another claim.
type Standing struct {
	Attempts, Deferrals, Losses int
	Accepted, Stages            int
	Answers                     int     // new ones since the claim
	Deadline                    Instant // of the job
}

// StandingOf is where a row stands.
func StandingOf(t Task, deadline Instant) Standing {
	return Standing{t.Attempts, t.Deferrals, t.Losses, t.Accepted, t.Stages, t.Answers, deadline}
}

// Verdict is what becomes of the row: all of it is set, none added to.
type Verdict struct {
	Status                      TaskStatus
	Attempts, Deferrals, Losses int
	Wait                        time.Duration // until it is ready again
	Counted                     bool          // the attempt used up one of MaxAttempts
}

// lossesForgiven is how many losses since the last accepted stage wait for nothing and may be deferrals. The next
// one counts whatever was achieved: a document that kills every worker makes progress too.
const lossesForgiven = 2

// Next is the only rule for giving up. It is applied by the worker that ends its attempt, by the reaper that expires
// a claim, and by whoever meets an exhausted row. jitter is in [0,1).
func Next(p Policy, s Standing, e Ending, now Instant, jitter float64) Verdict {
	v := Verdict{Status: TaskPending, Attempts: s.Attempts, Deferrals: s.Deferrals, Losses: s.Losses}
	refunded := max(0, s.Attempts-1)
	if e.Outcome == Died {
		v.Losses++
	}
	switch {
	case s.Accepted >= s.Stages: // finished work is never abandoned, whatever the ending says
		v.Status = TaskDone
		return v
	case e.Outcome == Permanent:
		v.Status, v.Counted = TaskAbandoned, true
		return v
	case e.Outcome == Stopped:
		v.Status = TaskCancelled
		return v
	case e.Outcome == Parked:
		v.Status, v.Attempts = TaskParked, refunded
		return v
	case e.Outcome == Overran && s.Answers > 0: // slow is not broken, and new answers are finite
		v.Attempts = refunded
		return v
	case deferred(s, e, v.Losses) && s.Deferrals < p.MaxDeferrals && !past(s.Deadline, now):
		v.Attempts, v.Deferrals = refunded, s.Deferrals+1
		v.Wait = deferralWait(p, v, e, jitter)
		return v
	case s.Attempts < p.MaxAttempts:
		v.Counted = true
		v.Wait = countedWait(p, v, e, jitter)
		return v
	}
	v.Status, v.Counted = TaskAbandoned, true
	return v
}

func deferred(s Standing, e Ending, losses int) bool {
	if e.Outcome == Died {
		return s.Answers > 0 && losses <= lossesForgiven
	}
	return e.Outcome == Deferral
}

func past(deadline, now Instant) bool { return deadline != 0 && now > deadline }

func deferralWait(p Policy, v Verdict, e Ending, jitter float64) time.Duration {
	switch {
	case e.Failure.Kind == Shutdown, e.Outcome == Died:
		return 0
	default:
		return max(p.DeferralWait(v.Deferrals, jitter), Spread(e.RetryAfter, jitter))
	}
}

func countedWait(p Policy, v Verdict, e Ending, jitter float64) time.Duration {
	if e.Outcome == Died {
		if v.Losses <= lossesForgiven {
			return 0
		}
		return p.AttemptWait(v.Losses-lossesForgiven, jitter)
	}
	return max(p.AttemptWait(v.Attempts, jitter), Spread(e.RetryAfter, jitter))
}

// DueAt is when the reaper looks at the row next. A message that comes back by itself leaves the reaper a long stop;
// a deferral's delivery was deleted, so the reaper rings on time.
func (v Verdict) DueAt(p Policy, now Instant) Instant {
	ready := now.Add(v.Wait)
	switch {
	case v.Status == TaskDone || v.Status == TaskCancelled:
		return 0
	case v.Status == TaskAbandoned: // whoever ended it sends the dead letter at once; the reaper is the net
		return now.Add(p.RenewEvery)
	case v.Status == TaskPending && !v.Counted:
		return ready
	default:
		return ready.Add(p.RingDelay)
	}
}
