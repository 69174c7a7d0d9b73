package pipeline

import (
	"errors"
	"fmt"
	"time"
)

// Refusal is why a row cannot be claimed.
type Refusal string

// The refusals, in the order in which [WhyRefused] looks for them.
const (
	RefusedMissing   Refusal = "missing"
	RefusedEnded     Refusal = "ended"
	RefusedHeld      Refusal = "held"
	RefusedParked    Refusal = "parked"
	RefusedEarly     Refusal = "early"
	RefusedExhausted Refusal = "exhausted"
	RefusedAlone     Refusal = "alone" // lost twice: claimed only by a worker that holds no other claim
	RefusedMoved     Refusal = "moved" // another generation than the one seen: look again
)

// ConditionError is a conditional write that was refused. Old is the row as the store saw it at that moment; nil if
// there was none.
type ConditionError struct {
	Op  string
	Ref Ref
	Old *Task
}

func (e *ConditionError) Error() string {
	if e.Old == nil {
		return fmt.Sprintf("%s %s: refused, there is no such row", e.Op, e.Ref)
	}
	return fmt.Sprintf("%s %s: refused, the row is %s at generation %d", e.Op, e.Ref, e.Old.Status, e.Old.Generation)
}

// Is makes every refused write an ErrFenced.
func (e *ConditionError) Is(target error) bool { return target == ErrFenced }

// Old is the row that a refused write met. ok is false if err is no refusal.
func Old(err error) (row *Task, ok bool) {
	var refused *ConditionError
	if !errors.As(err, &refused) {
		return nil, false
	}
	return refused.Old, true
}

// WhyRefused tells why a claim of the row was refused.
func WhyRefused(row *Task, w ClaimWrite) Refusal {
	switch {
	case row == nil:
		return RefusedMissing
	case row.Status.Ended():
		return RefusedEnded
	case row.Status == TaskClaimed:
		return RefusedHeld
	case row.Status == TaskParked:
		return RefusedParked
	case row.ReadyAt > w.Now:
		return RefusedEarly
	case row.Attempts >= w.MaxAttempts:
		return RefusedExhausted
	case row.Losses >= AloneLosses && !w.Alone:
		return RefusedAlone
	}
	return RefusedMoved
}

// AloneLosses is from how many losses since its last accepted stage on a row is claimed only by a worker without other
// claims: it may be what kills workers.
const AloneLosses = lossesForgiven

// Landed says that the claim w is the one the row holds, although its answer was lost. since is how long ago the
// claim was first sent: a claim that may have expired meanwhile is not ours any more.
func (w ClaimWrite) Landed(row *Task, since time.Duration, p Policy) bool {
	return row != nil && row.Status == TaskClaimed && row.ClaimID == w.ClaimID && since < p.ClaimTTL-p.MaxSkew
}

// Expirable says that the reaper may take the claim away: it lapsed by more than the clocks may differ, or the
// caller has waited for its worker, a process of this machine, to exit.
func (t Task) Expirable(w ExpireWrite) bool {
	return t.Status == TaskClaimed && (t.ExpiresAt < w.Now.Add(-w.MaxSkew) || (w.Exited != "" && t.ClaimedBy == w.Exited))
}

// Claim is a claimed row: the right to work on it, with the counters of this claim.
type Claim struct {
	Task
}

// Fence is what every write after the claim carries.
func (c Claim) Fence() Fence { return Fence{Ref: c.Ref, Generation: c.Generation, ClaimID: c.ClaimID} }

// Fence names the claim that a write is made under: it is refused once the row shows another.
type Fence struct {
	Ref
	Generation int64
	ClaimID    string
}
