package pipeline

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const noon Instant = 1767603600000

func TestNext(t *testing.T) {
	p := DefaultPolicy()
	at := func(attempts, deferrals, losses int) Standing {
		return Standing{Attempts: attempts, Deferrals: deferrals, Losses: losses, Stages: 5, Deadline: noon + 1000}
	}
	answered := func(s Standing) Standing { s.Answers = 1; return s }
	finished := func(s Standing) Standing { s.Accepted = 5; return s }
	late := func(s Standing) Standing { s.Deadline = noon - 1; return s }
	ending := func(o Outcome) Ending { return Ending{Outcome: o} }
	asked := func(o Outcome, d time.Duration) Ending { return Ending{Outcome: o, RetryAfter: d} }
	pending := func(attempts, deferrals, losses int, wait time.Duration, counted bool) Verdict {
		return Verdict{TaskPending, attempts, deferrals, losses, wait, counted}
	}
	ended := func(s TaskStatus, attempts, deferrals, losses int, counted bool) Verdict {
		return Verdict{s, attempts, deferrals, losses, 0, counted}
	}
	for _, test := range []struct {
		name string
		s    Standing
		e    Ending
		want Verdict
	}{
		{"every stage accepted is done", finished(at(1, 0, 0)), ending(Succeeded), ended(TaskDone, 1, 0, 0, false)},
		{"finished work is done though the attempt failed at the cap", finished(at(3, 0, 0)), ending(FailedNow), ended(TaskDone, 3, 0, 0, false)},
		{"finished work is done though the failure was permanent", finished(at(1, 0, 0)), ending(Permanent), ended(TaskDone, 1, 0, 0, false)},
		{"finished work is done though the job was cancelled", finished(at(1, 0, 0)), ending(Stopped), ended(TaskDone, 1, 0, 0, false)},
		{"finished work is done though the worker died at the cap", finished(at(3, 60, 2)), ending(Died), ended(TaskDone, 3, 60, 3, false)},
		{"finished work is done though the job is paused", finished(at(1, 0, 0)), ending(Parked), ended(TaskDone, 1, 0, 0, false)},
		{"more stages than the task has are done too", Standing{Accepted: 6, Stages: 5}, ending(FailedNow), ended(TaskDone, 0, 0, 0, false)},

		{"the first failure waits and counts", at(1, 0, 0), ending(FailedNow), pending(1, 0, 0, 30*time.Second, true)},
		{"the second waits twice as long", at(2, 0, 0), ending(FailedNow), pending(2, 0, 0, time.Minute, true)},
		{"the third is the last", at(3, 0, 0), ending(FailedNow), ended(TaskAbandoned, 3, 0, 0, true)},
		{"more attempts than a lower cap allows are too many", at(7, 0, 0), ending(FailedNow), ended(TaskAbandoned, 7, 0, 0, true)},
		{"a failure waits as long as it was asked to", at(1, 0, 0), asked(FailedNow, 10*time.Minute), pending(1, 0, 0, 10*time.Minute, true)},
		{"but not less than the backoff", at(1, 0, 0), asked(FailedNow, time.Second), pending(1, 0, 0, 30*time.Second, true)},
		{"an attempt that claims success without its stages counts", at(1, 0, 0), ending(Succeeded), pending(1, 0, 0, 30*time.Second, true)},

		{"a permanent failure gives up at once", at(1, 0, 0), ending(Permanent), ended(TaskAbandoned, 1, 0, 0, true)},
		{"a cancelled task is cancelled", at(2, 1, 1), ending(Stopped), ended(TaskCancelled, 2, 1, 1, false)},
		{"a parked task gets its attempt back", at(2, 1, 1), ending(Parked), ended(TaskParked, 1, 1, 1, false)},
		{"a parked task owes nothing", at(0, 0, 0), ending(Parked), ended(TaskParked, 0, 0, 0, false)},

		{"a deferral is refunded", at(1, 0, 0), ending(Deferral), pending(0, 1, 0, 30*time.Second, false)},
		{"a deferral is refunded at the cap too", at(3, 0, 0), ending(Deferral), pending(2, 1, 0, 30*time.Second, false)},
		{"a deferral never refunds what was not counted", at(0, 0, 0), ending(Deferral), pending(0, 1, 0, 30*time.Second, false)},
		{"later deferrals wait longer", at(1, 4, 0), ending(Deferral), pending(0, 5, 0, 8*time.Minute, false)},
		{"a deferral waits as long as the provider asked", at(1, 0, 0), asked(Deferral, time.Hour), pending(0, 1, 0, time.Hour, false)},
		{"a shutdown waits for nothing", at(1, 0, 0), Ending{Outcome: Deferral, Failure: Fail(Shutdown, "stop")}, pending(0, 1, 0, 0, false)},
		{"the last deferral is one", at(1, 59, 0), ending(Deferral), pending(0, 60, 0, 30*time.Minute, false)},
		{"one more counts", at(1, 60, 0), ending(Deferral), pending(1, 60, 0, 30*time.Second, true)},
		{"and gives up at the cap", at(3, 60, 0), ending(Deferral), ended(TaskAbandoned, 3, 60, 0, true)},
		{"a deferral past the deadline counts", late(at(1, 0, 0)), ending(Deferral), pending(1, 0, 0, 30*time.Second, true)},
		{"a deferral past the deadline gives up at the cap", late(at(3, 0, 0)), ending(Deferral), ended(TaskAbandoned, 3, 0, 0, true)},
		{"a job without a deadline has none", Standing{Attempts: 1, Stages: 5}, ending(Deferral), pending(0, 1, 0, 30*time.Second, false)},
		{"the deadline itself is not past", Standing{Attempts: 1, Stages: 5, Deadline: noon}, ending(Deferral), pending(0, 1, 0, 30*time.Second, false)},

		{"the first loss counts and waits for nothing", at(1, 0, 0), ending(Died), pending(1, 0, 1, 0, true)},
		{"the second too", at(2, 0, 1), ending(Died), pending(2, 0, 2, 0, true)},
		{"the third loss at the cap gives up", at(3, 0, 2), ending(Died), ended(TaskAbandoned, 3, 0, 3, true)},
		{"a third loss under the cap waits", at(2, 0, 2), ending(Died), pending(2, 0, 3, 30*time.Second, true)},
		{"a fourth waits longer", at(2, 0, 3), ending(Died), pending(2, 0, 4, time.Minute, true)},
		{"a loss with new answers is a deferral, at once", answered(at(3, 0, 1)), ending(Died), pending(2, 1, 2, 0, false)},
		{"the third loss counts whatever was achieved", answered(at(1, 0, 2)), ending(Died), pending(1, 0, 3, 30*time.Second, true)},
		{"a loss with new answers past the deferrals counts", answered(at(1, 60, 0)), ending(Died), pending(1, 60, 1, 0, true)},

		{"slow with new answers uses nothing up", answered(at(3, 60, 0)), ending(Overran), pending(2, 60, 0, 0, false)},
		{"slow without any counts", at(1, 0, 0), ending(Overran), pending(1, 0, 0, 30*time.Second, true)},
		{"slow without any gives up at the cap", at(3, 0, 0), ending(Overran), ended(TaskAbandoned, 3, 0, 0, true)},
		{"answers refund no failure", answered(at(2, 0, 0)), ending(FailedNow), pending(2, 0, 0, time.Minute, true)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(p, test.s, test.e, noon, 0); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
	t.Run("jitter lengthens a wait by up to a fifth and never shortens it", func(t *testing.T) {
		for _, o := range []Outcome{FailedNow, Deferral} {
			got := Next(p, at(1, 0, 0), ending(o), noon, 0.5).Wait
			if want := 33 * time.Second; got != want {
				t.Errorf("%s: got %v, want %v", o, got, want)
			}
			got = Next(p, at(1, 0, 0), asked(o, time.Hour), noon, 0.5).Wait
			if want := 66 * time.Minute; got != want {
				t.Errorf("%s, asked to wait: got %v, want %v", o, got, want)
			}
		}
	})
}

// Whatever happened, what Next says keeps the promises.
func TestNextKeepsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	outcomes := []Outcome{Succeeded, FailedNow, Deferral, Permanent, Stopped, Parked, Died, Overran}
	for range 200_000 {
		p := DefaultPolicy()
		p.MaxAttempts, p.MaxDeferrals = 1+r.IntN(4), r.IntN(5)
		s := Standing{
			Attempts: r.IntN(6), Deferrals: r.IntN(7), Losses: r.IntN(5), Accepted: r.IntN(4), Stages: 3, Answers: r.IntN(2),
			Deadline: []Instant{0, noon - 1, noon, noon + 1}[r.IntN(4)],
		}
		e := Ending{Outcome: outcomes[r.IntN(len(outcomes))], RetryAfter: time.Duration(r.IntN(2)) * time.Hour}
		if broken := broken(p, s, e, Next(p, s, e, noon, r.Float64())); broken != "" {
			t.Fatalf("%s\n%+v\n%+v\n%+v", broken, s, e, Next(p, s, e, noon, 0))
		}
	}
}

// broken names the promise that the verdict breaks.
func broken(p Policy, s Standing, e Ending, v Verdict) string {
	refunded := v.Attempts == s.Attempts-1
	switch {
	case (s.Accepted >= s.Stages) != (v.Status == TaskDone):
		return "done and finished are the same"
	case v.Status == TaskAbandoned && e.Outcome != Permanent && s.Attempts < p.MaxAttempts:
		return "given up under the cap"
	case v.Status == TaskPending && v.Counted && s.Attempts >= p.MaxAttempts:
		return "another attempt at the cap"
	case v.Attempts != s.Attempts && !refunded:
		return "attempts are neither kept nor refunded by one"
	case v.Attempts < 0:
		return "attempts below nothing"
	case refunded && v.Counted:
		return "an attempt that was refunded counts"
	case v.Deferrals != s.Deferrals && (v.Deferrals != s.Deferrals+1 || v.Deferrals > p.MaxDeferrals):
		return "deferrals are not counted one by one up to their number"
	case refunded && e.Outcome == Deferral && v.Deferrals != s.Deferrals+1:
		return "a deferral was refunded without being counted"
	case v.Losses < s.Losses || (v.Losses > s.Losses) != (e.Outcome == Died):
		return "losses are not counted"
	case v.Wait < 0 || v.Wait > 2*time.Hour:
		return "a wait without bound"
	case v.Status == TaskCancelled && e.Outcome != Stopped:
		return "cancelled by nobody"
	case v.Status == TaskParked && e.Outcome != Parked:
		return "parked by nobody"
	}
	return ""
}

// Without a new answer and without an accepted stage, the claims of a task have an end, whatever its attempts end in.
func TestNextEndsEveryLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		p := DefaultPolicy()
		p.MaxAttempts, p.MaxDeferrals = 1+r.IntN(4), r.IntN(5)
		s, claims := Standing{Stages: 2}, 0
		for status := TaskPending; status == TaskPending; claims++ {
			s.Attempts++ // the claim counts before the work
			e := Ending{Outcome: []Outcome{FailedNow, Deferral, Died, Overran, Succeeded}[r.IntN(5)]}
			v := Next(p, s, e, noon, r.Float64())
			s.Attempts, s.Deferrals, s.Losses, status = v.Attempts, v.Deferrals, v.Losses, v.Status
		}
		if limit := p.MaxAttempts + p.MaxDeferrals; claims > limit {
			t.Fatalf("got %d claims, want at most %d", claims, limit)
		}
	}
}

func TestVerdictDueAt(t *testing.T) {
	p := DefaultPolicy()
	for _, test := range []struct {
		name string
		v    Verdict
		want Instant
	}{
		{"a done row is not looked at", Verdict{Status: TaskDone}, 0},
		{"nor is a cancelled one", Verdict{Status: TaskCancelled}, 0},
		{"an abandoned row is looked at after a moment", Verdict{Status: TaskAbandoned}, noon.Add(p.RenewEvery)},
		{"a deferral is rung when it is ready", Verdict{Status: TaskPending, Wait: time.Minute}, noon.Add(time.Minute)},
		{"a counted attempt leaves its delivery time to come back", Verdict{Status: TaskPending, Wait: time.Minute, Counted: true}, noon.Add(time.Minute + p.RingDelay)},
		{"a parked row is looked at now and then", Verdict{Status: TaskParked}, noon.Add(p.RingDelay)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.v.DueAt(p, noon); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestEndingOf(t *testing.T) {
	want := map[Kind]Outcome{
		"": Succeeded, Throttled: Deferral, Quota: Deferral, Unavailable: FailedNow, Ambiguous: FailedNow, TooLong: Permanent,
		Truncated: Permanent, Malformed: Permanent, Refused: Permanent, Rejected: Deferral, Invalid: Permanent, StoreFault: Deferral,
		Broken: FailedNow, Lost: Died, TimedOut: Overran, Shutdown: Deferral, Busy: Deferral, Exhausted: Permanent,
		Cancelled: Stopped, Paused: Parked,
	}
	for kind, outcome := range want {
		t.Run(fmt.Sprintf("%q", kind), func(t *testing.T) {
			got := EndingOf(Failure{Kind: kind, Cause: "c"}, time.Second)
			if got.Outcome != outcome || got.Failure.Kind != kind || got.RetryAfter != time.Second {
				t.Errorf("got %+v, want %s", got, outcome)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	type does struct{ retryable, deferred, cellFails, free bool }
	for kind, want := range map[Kind]does{
		Throttled:   {retryable: true, deferred: true, free: true},
		Quota:       {deferred: true, free: true},
		Unavailable: {retryable: true, free: true},
		Ambiguous:   {retryable: true},
		TooLong:     {cellFails: true, free: true},
		Truncated:   {cellFails: true},
		Malformed:   {cellFails: true},
		Refused:     {cellFails: true},
		Rejected:    {deferred: true, free: true},
		Invalid:     {cellFails: true},
		StoreFault:  {deferred: true},
		Broken:      {}, Lost: {}, TimedOut: {}, Exhausted: {}, Cancelled: {}, Paused: {},
		Shutdown: {deferred: true},
		Busy:     {deferred: true},
	} {
		if got := (does{kind.Retryable(), kind.Deferred(), kind.CellFails(), kind.Free()}); got != want {
			t.Errorf("%s: got %+v, want %+v", kind, got, want)
		}
	}
}
