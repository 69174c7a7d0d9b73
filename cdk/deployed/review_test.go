//go:build deployed

package deployed

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/telemetry/alarmtest"
)

// tenant is the account of LocalStack: what the api takes callers for.
const tenant = "000000000000"

// Exit codes of the command line.
const (
	completed = 0
	failed    = 1
	partial   = 3
	cancelled = 4
)

// whole says that nothing is missing from a review.
func (b *bench) whole(o outcome) {
	b.t.Helper()
	if o.Status != "completed" || o.Counts.Failed+o.Counts.NotAsked > 0 || o.Asked == 0 {
		b.t.Errorf("got %+v, want every cell answered or gated", o)
	}
}

func TestAReviewByFunctionsAlone(t *testing.T) {
	b := newBench(t)
	b.deploy()
	began := time.Now()
	o := b.reviews(completed, b.document(30_000))
	b.whole(o)
	b.quiet(began)
	paid := alarmtest.Metric{Namespace: "Holdfast", Name: "PaidCalls", Dimensions: "Stack=" + b.stack}
	b.until("the functions' metrics count every call that the job paid, and none twice", func() bool {
		got := b.seen(began).Of(paid)
		if got > float64(o.Asked) {
			t.Fatalf("got %v paid calls in the metrics, want %d", got, o.Asked)
		}
		return got == float64(o.Asked)
	})
}

// quiet says that no alarm was raised since a time, but for that of the reaper before its first sweep.
func (b *bench) quiet(began time.Time) {
	b.t.Helper()
	seen := b.seen(began)
	for name, alarm := range b.alarms() {
		if name == "SilentReaper" {
			continue
		}
		if when, why, err := alarm.Rang(seen, began, time.Now()); err != nil || !when.IsZero() {
			b.t.Errorf("an alarm was raised: %s, %v", why, err)
		}
	}
}

func TestAReviewByWorkdAlone(t *testing.T) {
	b := newBench(t)
	b.deploy("workers=fargate", "image=local")
	workd := b.workd("")
	b.whole(b.reviews(completed, b.document(30_000)))
	workd.stop()
}

// swift is the shipped policy with short claims and waits: what takes minutes takes the test seconds.
const swift = `claim_ttl: 4s
renew_every: 1s
max_skew: 1s
try_backoff: 100ms
attempt_backoff: 1s
deferral_backoff: 1s
max_deferrals: 500
ring_delay: 5s
ring_limit: 20s
`

// brief makes a function's time 20 s in all.
const brief = `call_timeout: 4s
retry_wait: 4s
limiter_ahead: 3s
stall_timeout: 5s
attempt_timeout: 10s
`

func policyFile(t *testing.T, more string) string {
	t.Helper()
	body := []byte(swift + more)
	path := filepath.Join(built, fmt.Sprintf("policy-%x.yaml", sha256.Sum256(body)))
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFunctionsThatCrashAreFrozenUntilTheirTimeIsOverAndAreDeployedAgainInTheMiddle(t *testing.T) {
	b := newBench(t)
	policy := policyFile(t, brief)
	b.deploy("policy="+policy, "offline-fail=crash=3%,throttled=3%,unavailable=2%", "offline-pace=300ms", "quota=100000000")
	b.hurry()
	began := time.Now()
	over := b.reviewing(completed, b.document(30_000), "--policy", policy)
	b.freezes("work")
	b.until("the frozen function was ended at its time-out", func() bool { return strings.Contains(b.log("work", began), "Task timed out") })
	// Other settings, while chunks are claimed. They crash too: which calls do is fixed, and how far the first got is not.
	b.deploy("policy="+policy, "offline-fail=crash=3%", "offline-pace=100ms")
	o := over()
	b.whole(o)
	lost := 0
	for chunk := range 7 {
		lost += b.lost(o.Job, strconv.Itoa(chunk))
	}
	if lost < 2 {
		t.Errorf("%d attempts were lost, want that of the frozen function and those that crashed", lost)
	}
}

// Three of seven chunks kill whoever works on them. Their rows have more attempts than the policy that is deployed in the
// middle allows, and nobody touches them.
func TestPoisonChunksAreGivenUpWithTheirReasonsAndAlarmsAndALowerCapStopsOldRowsByItself(t *testing.T) {
	b := newBench(t)
	const kill, high, low = "HOLDFAST-POISON-KILL", 12, 2
	policy := policyFile(t, fmt.Sprintf("max_attempts: %d\nmax_receives: 13\n", high))
	b.deploy("policy=" + policy)
	b.hurry()
	began := time.Now()
	over := b.reviewing(partial, b.document(30_000, kill, kill, kill), "--policy", policy)
	b.until("a row has as many attempts as the lower cap", func() bool {
		return len(b.rows("#status <> :abandoned AND attempts >= :low", map[string]any{":abandoned": text("abandoned"), ":low": number(low)})) > 0
	})
	b.deploy("policy=" + policyFile(t, fmt.Sprintf("max_attempts: %d\nmax_receives: 13\n", low)))
	o := over()
	if o.Counts.Answered == 0 || o.Counts.NotAsked == 0 {
		t.Fatalf("got %+v, want the neighbours answered and the poison's cells not asked", o)
	}
	told := b.says(completed, "dead-letters") + b.says(completed, "why", o.Job)
	letters := b.letters(o.Job)
	if len(letters) != 3 {
		t.Fatalf("got %d dead letters of the job, want one for each poison: %+v", len(letters), letters)
	}
	most := 0
	for _, l := range letters {
		if !strings.Contains(told, l.Task) {
			t.Errorf("dead-letters and why do not speak of %s", l.Task)
		}
		attempts := b.lost(o.Job, l.Task)
		most = max(most, attempts)
		if attempts < low || attempts >= high || len(l.Context) != attempts || l.Reason.Kind != "lost" {
			t.Errorf("%s had %d attempts, and its letter tells of %d (%s): want at least %d, fewer than %d, and all of them", l.Task, attempts, len(l.Context), l.Reason.Kind, low, high)
		}
		for _, record := range l.Context {
			if record.Failure.Kind != "lost" || record.Failure.Cause == "" || record.Worker == "" || record.EndedAt == 0 {
				t.Errorf("%s: an attempt without its reason, worker or time: %+v", l.Task, record)
			}
		}
	}
	t.Logf("abandoned after at most %d attempts, at a cap of %d that was %d when they began\n%s", most, low, high, told)
	b.says(completed, "redrive", o.Job, "--dry-run")
	b.raised(began, "Abandoned", "WorkDeadLetters")
}

// lost is how many attempts at a task were lost, as why tells.
func (b *bench) lost(job, task string) (n int) {
	b.t.Helper()
	var told struct {
		Attempts []struct {
			Record struct{ Failure struct{ Kind string } }
		}
	}
	said := b.says(completed, "why", job, task, "--json")
	if err := json.Unmarshal([]byte(said), &told); err != nil {
		b.t.Fatalf("%v: %s", err, said)
	}
	for _, attempt := range told.Attempts {
		if attempt.Record.Failure.Kind == "lost" {
			n++
		}
	}
	return n
}

// raised says that these alarms were raised since a time, on what the functions and SQS have measured, that they were
// not before, and that no other was.
func (b *bench) raised(began time.Time, names ...string) {
	b.t.Helper()
	alarms := b.alarms()
	for _, name := range names {
		b.until(name+" is raised", func() bool {
			when, why, err := alarms[name].Rang(b.seen(began), began, time.Now().Add(time.Minute))
			if err != nil {
				b.t.Fatal(err)
			}
			if !when.IsZero() {
				b.t.Log(why)
			}
			return !when.IsZero()
		})
	}
	seen := b.seen(began)
	for name, alarm := range alarms {
		for _, m := range alarm.Metrics() {
			if m.Namespace == "Holdfast" && m.Name != "Unclaimable" && seen.Of(m) == 0 {
				b.t.Errorf("%s reads %+v, which nobody measured", name, m)
			}
		}
		rings := func(at time.Time, want bool) {
			got, why, err := alarm.Rings(seen, at)
			if err != nil || got != want {
				b.t.Errorf("raised: %v, want %v: %s, %v", got, want, why, err)
			}
		}
		later := time.Now().Add(time.Hour) // when nothing is measured any more
		switch {
		case name == "SilentReaper":
			rings(time.Now(), false)
			rings(later, true)
		case slices.Contains(names, name):
			rings(began.Add(-time.Minute), false) // SQS measures by the minute
			rings(later, false)
		default:
			if when, why, err := alarm.Rang(seen, began, later); err != nil || !when.IsZero() {
				b.t.Errorf("an alarm was raised: %s, %v", why, err)
			}
		}
	}
}

func TestACancelStopsWhatFunctionsDo(t *testing.T) {
	b := newBench(t)
	b.deploy("policy="+policyFile(t, fewReceives), "offline-pace=2s")
	b.hurry()
	job := strings.TrimSpace(b.says(completed, "submit", b.document(30_000), "--profile", "compact", "--fresh", "--start"))
	for deadline := time.Now().Add(patience); !strings.Contains(b.says(completed, "status", job), "running"); {
		if time.Now().After(deadline) {
			t.Fatal("nobody split it")
		}
	}
	b.says(completed, "cancel", job)
	b.says(cancelled, "watch", job)
	if said := b.says(completed, "status", job); !strings.Contains(said, "cancelled") {
		t.Errorf("got %s", said)
	}
}
