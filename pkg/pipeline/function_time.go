package pipeline

import (
	"fmt"
	"time"
)

// MostFunctionTime is the longest that a function may take for one event, wherever it runs.
const MostFunctionTime = 15 * time.Minute

// FunctionReserve is what must be left of an event's time while anything new may begin: for the tries in flight, and
// for the writes that end their attempts.
func (p Policy) FunctionReserve() time.Duration { return p.LongestTry() + p.ClaimTTL }

// FunctionTimeout is how long a function that works on tasks may take for one event: an attempt, what is reserved, and
// a little for its beginning. So an attempt's time ends before the function's does.
func (p Policy) FunctionTimeout() time.Duration {
	return p.RenewEvery + p.AttemptTimeout + p.FunctionReserve()
}

// FunctionVisibility is how long a delivery to such a function stays invisible: six times its timeout, so that an event
// which is turned away for want of capacity can be tried again. When a worker dies the reaper is much faster.
func (p Policy) FunctionVisibility() time.Duration { return 6 * p.FunctionTimeout() }

// CheckFunction says whether a function has the time that the policy needs.
func (p Policy) CheckFunction() error {
	if p.FunctionTimeout() <= MostFunctionTime {
		return nil
	}
	return fmt.Errorf("renew_every (%v) + attempt_timeout (%v) + the longer of call_timeout (%v) and stall_timeout (%v) + claim_ttl (%v) must be at most %v: no function may take longer",
		p.RenewEvery, p.AttemptTimeout, p.CallTimeout, p.StallTimeout, p.ClaimTTL, MostFunctionTime)
}
