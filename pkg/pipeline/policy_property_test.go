package pipeline

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// anyPolicy is the shipped policy with some of its numbers replaced by ordinary, small, huge and absurd ones.
func anyPolicy(r *rand.Rand) Policy {
	p := DefaultPolicy()
	v := reflect.ValueOf(&p).Elem()
	for range 1 + r.IntN(5) {
		field := v.Field(r.IntN(v.NumField()))
		number := []int64{0, 1, -1, 2, math.MaxInt64, math.MinInt64, math.MaxInt64 / 2, 1 << 40, int64(r.IntN(200))}[r.IntN(9)]
		if field.Type() == reflect.TypeFor[time.Duration]() {
			switch r.IntN(3) {
			case 0:
				number = int64(float64(field.Int()) * (0.1 + 3*r.Float64()))
			case 1:
				number = int64(time.Duration(r.IntN(10_000)) * time.Second)
			}
		}
		field.SetInt(number)
	}
	return p
}

// What Validate accepts holds in the worst case that it speaks of; so what breaks a bound is refused.
func TestEveryValidPolicyHoldsItsBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	valid := 0
	for range 40_000 {
		p := anyPolicy(r)
		if p.Validate() != nil {
			continue
		}
		valid++
		if broken := brokenBound(p, r); broken != "" {
			t.Fatalf("%s\n%+v", broken, p)
		}
	}
	if valid < 4_000 {
		t.Errorf("only %d policies were valid", valid)
	}
}

// brokenBound names a bound that the policy does not hold.
func brokenBound(p Policy, r *rand.Rand) string {
	for n := range 100 {
		jitter := r.Float64()
		for name, wait := range map[string]time.Duration{
			"the wait before a try":       p.TryWait(n+1, jitter),
			"the wait after an attempt":   p.AttemptWait(n+1, jitter),
			"the wait after a deferral":   p.DeferralWait(n+1, jitter),
			"the wait after a ring":       p.RingWait(n),
			"the visibility of a message": p.Visibility(),
			"a held row's wait":           p.HeldWait(Task{ClaimedAt: noon}, noon.Add(time.Second)),
			"the margin of a claim":       p.OwnMargin(),
		} {
			if wait < 0 || wait > 2*year {
				return name + " is " + wait.String()
			}
		}
		if n > 1 && p.DeferralWait(n, 0) > p.DeferralWait(n+1, 0) || n > 1 && p.RingWait(n-1) > p.RingWait(n) {
			return "waits become shorter"
		}
	}
	switch {
	case claimLapsesInBetween(p):
		return "a healthy claim lapses between two renewals"
	case tryStartsAfterCancel(p) >= 2*time.Second:
		return "a call starts 2 s after a cancel"
	case outageUsesUp(p):
		return "an outage counts against a task before its job's deadline"
	case p.MaxReceives <= p.MaxAttempts:
		return "the queue gives up before the row"
	case p.CallTimeout+p.RetryWait >= p.AttemptTimeout || p.StallTimeout >= p.AttemptTimeout || p.CallTimeout >= p.StallTimeout:
		return "the slowest call is no attempt's"
	case p.WorstCase(100*Dollar) < 100*Dollar || p.TryCap(1_000_000) < 1_000_000:
		return "the worst case is less than one try of everything"
	case p.Block(1000) < 1 || p.Block(1000) > p.TryCap(1000):
		return "a block is larger than the cap"
	case deadlineOf(p) < noon:
		return "a job's deadline is before its beginning"
	}
	return ""
}

const year = 366 * 24 * time.Hour

// deadlineOf is the deadline of a job that begins at noon.
func deadlineOf(p Policy) Instant { return noon.Add(p.JobDeadline) }

// claimLapsesInBetween renews a claim as late as its worker does, under the eyes of a reaper whose clock is ahead by as
// much as a clock may be.
func claimLapsesInBetween(p Policy) bool {
	row := Task{Status: TaskClaimed, ExpiresAt: noon.Add(p.ClaimTTL)}
	now := noon
	for range 5 {
		now = now.Add(p.RenewEvery)
		if row.Expirable(ExpireWrite{Now: now.Add(p.MaxSkew), MaxSkew: p.MaxSkew}) || now >= row.ExpiresAt.Add(-p.OwnMargin()) {
			return true
		}
		row.ExpiresAt = now.Add(p.ClaimTTL)
	}
	return false
}

// tryStartsAfterCancel is how long after a cancel a try can still start: on a reading that began right before it.
func tryStartsAfterCancel(p Policy) time.Duration { return p.JobFresh }

// outageUsesUp lets a task meet an outage again and again, each time at the first moment at which it may.
func outageUsesUp(p Policy) bool {
	s := Standing{Stages: 1, Deadline: noon.Add(p.JobDeadline)}
	now := noon
	for range p.MaxDeferrals + 1 {
		s.Attempts++
		v := Next(p, s, Ending{Outcome: Deferral}, now, 0)
		if v.Counted {
			return now <= s.Deadline && p.JobDeadline > 0
		}
		s.Attempts, s.Deferrals = v.Attempts, v.Deferrals
		now = now.Add(v.Wait)
		if now > s.Deadline {
			return false
		}
	}
	return false
}

// Each number that is out of its range, alone, is refused by its name.
func TestAbsurdNumbersAreRefusedByName(t *testing.T) {
	v := reflect.TypeFor[Policy]()
	for i := range v.NumField() {
		name := strings.Split(v.Field(i).Tag.Get("json"), ",")[0]
		for _, number := range []int64{math.MinInt64, -1, math.MaxInt64 / 2, math.MaxInt64} {
			p := DefaultPolicy()
			reflect.ValueOf(&p).Elem().Field(i).SetInt(number)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s = %d: got %v, want it refused by its name", name, number, err)
			}
		}
	}
}
