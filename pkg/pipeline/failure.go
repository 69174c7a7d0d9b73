package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says what kind of failure it was; the kind decides what happens next.
type Kind string

// The kinds. What each does is in its methods below; the table in the README says the same for people.
const (
	Throttled   Kind = "throttled"   // the model asks us to slow down
	Quota       Kind = "quota"       // a daily quota or the balance is used up
	Unavailable Kind = "unavailable" // the model's service is down or overloaded
	Ambiguous   Kind = "ambiguous"   // no answer, perhaps billed: timeout, cut stream
	TooLong     Kind = "too_long"    // the context length is exceeded
	Truncated   Kind = "truncated"   // the answer hit max_tokens
	Malformed   Kind = "malformed"   // not JSON, schema mismatch, empty answer
	Refused     Kind = "refused"     // content filter or refusal
	Rejected    Kind = "rejected"    // configuration: credentials, unknown model
	Invalid     Kind = "invalid"     // this input can never work
	StoreFault  Kind = "store"       // our own table, queue or bucket
	Broken      Kind = "broken"      // the handler panicked or failed on its own
	Lost        Kind = "lost"        // the worker died
	TimedOut    Kind = "timed_out"   // the attempt took longer than its time, or made no progress
	Shutdown    Kind = "shutdown"    // the worker was asked to stop
	Busy        Kind = "busy"        // no capacity now: limiter, budget reserved by others, breaker open
	Exhausted   Kind = "exhausted"   // the attempts or the tries that were allowed are used up
	Cancelled   Kind = "cancelled"   // a person, the budget or the deadline
	Paused      Kind = "paused"      // the job is paused, or not started yet
)

// Failure is a stored reason. Detail is cut to MaxDetail bytes.
type Failure struct {
	Kind   Kind   `json:"kind"`
	Stage  string `json:"stage,omitempty"`
	Call   string `json:"call,omitempty"`
	Cause  string `json:"cause"`            // one sentence for a person
	Code   string `json:"code,omitempty"`   // the provider's or the system's own code
	Detail string `json:"detail,omitempty"` // e.g. the first bytes of the provider's message
}

// MaxDetail bounds each text of a Failure, in bytes, so that a row stays small however often it fails.
const MaxDetail = 300

// Fail makes a failure; cause is cut to MaxDetail bytes.
func Fail(kind Kind, format string, args ...any) Failure {
	return Failure{Kind: kind, Cause: Cut(fmt.Sprintf(format, args...), MaxDetail)}
}

// At names the stage and call of the failure.
func (f Failure) At(stage, call string) Failure {
	f.Stage, f.Call = stage, call
	return f
}

// None says that there is no failure.
func (f Failure) None() bool { return f.Kind == "" }

// String is for people. That something was cancelled its cause says itself: a person's words, the ceiling, the deadline.
func (f Failure) String() string {
	if f.None() {
		return ""
	}
	if f.Kind == Cancelled && f.Stage == "" && f.Call == "" {
		return f.Cause
	}
	where := ""
	if f.Stage != "" {
		where = " in stage " + f.Stage
	}
	if f.Call != "" {
		where += ", call " + f.Call
	}
	if f.Kind == Cancelled {
		return fmt.Sprintf("stopped%s: %s", where, f.Cause)
	}
	return fmt.Sprintf("%s%s: %s", f.Kind, where, f.Cause)
}

// Cut shortens s to at most n bytes without cutting a character in two. Bytes that are no text become "?": a provider's
// error may be anything.
func Cut(s string, n int) string {
	if cut, ok := cutValid(s, n); ok {
		return cut
	}
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	cut, _ := cutValid(s, n)
	return cut
}

// cutValid cuts a text that is longer than n and UTF-8 as far as it is kept, without a look at the rest: it may be a
// whole document. ok is false for any other.
func cutValid(s string, n int) (cut string, ok bool) {
	if len(s) <= n {
		return s, false
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	_, size := utf8.DecodeRuneInString(s[n:])
	return s[:n], utf8.ValidString(s[:n]) && (size > 1 || s[n] < utf8.RuneSelf)
}

// Retryable says that the same call may be sent again in this attempt (tier one).
func (k Kind) Retryable() bool { return k == Throttled || k == Unavailable || k == Ambiguous }

// Deferred says that a task which met this ends its attempt as a deferral: through no fault of its own.
func (k Kind) Deferred() bool {
	switch k {
	case Throttled, Quota, Rejected, StoreFault, Shutdown, Busy:
		return true
	}
	return false
}

// CellFails says that the cell fails for good and the rest of the stage goes on.
func (k Kind) CellFails() bool {
	switch k {
	case TooLong, Truncated, Malformed, Refused, Invalid:
		return true
	}
	return false
}

// Free says that a try that ended so was not billed and gives its allowance back.
func (k Kind) Free() bool {
	switch k {
	case Throttled, Quota, Rejected, Unavailable, TooLong:
		return true
	}
	return false
}

// ModelError is what a model's adapter returns: the kind, decided in one place per adapter.
type ModelError struct {
	Failure
	RetryAfter time.Duration // what the provider asked for; 0 = nothing
	Usage      Usage         // what was used up before it failed, if known
	Cost       Money         // of a handler's try
	Err        error
}

func (e *ModelError) Error() string { return e.Failure.String() }
func (e *ModelError) Unwrap() error { return e.Err }

// Errors of the ports. Adapters wrap them; steps ask with errors.Is.
var (
	ErrNotFound  = errors.New("not found")
	ErrTooLarge  = errors.New("larger than an item may be")
	ErrBusy      = errors.New("the store is busy")             // retry later: a StoreFault, never a refusal
	ErrConflict  = errors.New("transaction conflict")          // retry: never a refusal
	ErrCancelled = errors.New("the job is cancelled")          // cause of a cancelled context
	ErrPaused    = errors.New("the job is paused")             // cause
	ErrDraining  = errors.New("the worker is shutting down")   // cause
	ErrClaimLost = errors.New("the claim was lost")            // cause
	ErrTimedOut  = errors.New("the attempt's time is over")    // cause
	ErrStalled   = errors.New("the attempt makes no progress") // cause
	ErrFenced    = errors.New("a later claim exists")          // a write after the claim was refused
	ErrCeiling   = errors.New("the cost ceiling was reached")
	ErrOverspent = errors.New("a try cost more than was said before")
	ErrTriesUsed = errors.New("all tries that the task may ever send are used up")
	ErrNotMade   = errors.New("the stack was not deployed here") // what a deployment keeps its state in is not there
	ErrNewer     = errors.New("written by a newer version of Holdfast")
)
