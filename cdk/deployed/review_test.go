//go:build deployed

package deployed

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tenant is the account of LocalStack: what the api takes callers for.
const tenant = "000000000000"

// Exit codes of the command line.
const (
	completed = 0
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
	b.whole(b.reviews(completed, b.document(30_000, "")))
}

func TestAReviewByWorkdAlone(t *testing.T) {
	b := newBench(t)
	b.deploy("workers=fargate", "image=local")
	stop := b.workd()
	b.whole(b.reviews(completed, b.document(30_000, "")))
	stop()
}

func TestAReviewByBothAtOnce(t *testing.T) {
	b := newBench(t)
	b.deploy("workers=both", "image=local")
	stop := b.workd("HOLDFAST_IN_FLIGHT=4", "HOLDFAST_OFFLINE_PACE=1s") // it leaves some to the functions
	b.whole(b.reviews(completed, b.document(30_000, "")))
	stop()
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

func policyFile(t *testing.T, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(swift+more), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFunctionsThatCrashAndAreDeployedAgainInTheMiddle(t *testing.T) {
	b := newBench(t)
	policy := policyFile(t, "")
	b.deploy("policy="+policy, "offline-fail=crash=3%,throttled=3%,unavailable=2%", "offline-pace=300ms", "quota=100000000")
	b.hurry()
	document := b.document(30_000, "")
	done := make(chan outcome, 1)
	go func() { done <- b.reviews(completed, document, "--policy", policy) }()
	// Other settings, while chunks are claimed. They crash too: which calls do is fixed, and how far the first got is not.
	b.deploy("policy="+policy, "offline-fail=crash=3%", "offline-pace=100ms")
	o := <-done
	b.whole(o)
	lost := 0
	for chunk := range 7 {
		lost += strings.Count(b.says(completed, "why", o.Job, strconv.Itoa(chunk)), "because lost")
	}
	if lost == 0 {
		t.Error("no function died in the middle of its calls: nothing was tried")
	}
}

func TestAPoisonChunkIsGivenUpWithItsReasonsAndALowerCapStopsOldRowsByItself(t *testing.T) {
	b := newBench(t)
	policy := policyFile(t, "max_attempts: 4\nmax_receives: 6\n")
	b.deploy("policy=" + policy)
	b.hurry()
	document := b.document(30_000, "HOLDFAST-POISON-KILL")
	done := make(chan outcome, 1)
	go func() { done <- b.reviews(partial, document, "--policy", policy) }()
	lower := policyFile(t, "max_attempts: 2\nmax_receives: 6\n")
	b.deploy("policy=" + lower)
	o := <-done
	if o.Counts.Answered == 0 || o.Counts.NotAsked == 0 {
		t.Fatalf("got %+v, want the neighbours answered and the poison's cells not asked", o)
	}
	letters := b.says(completed, "dead-letters")
	why := b.says(completed, "why", o.Job)
	for _, want := range []string{o.Job, "lost"} {
		if !strings.Contains(letters, want) {
			t.Errorf("%q is not in the dead letters:\n%s", want, letters)
		}
		if !strings.Contains(why, want) && want != o.Job {
			t.Errorf("%q is not in why:\n%s", want, why)
		}
	}
	t.Logf("%s\n%s", letters, why)
	b.says(completed, "redrive", o.Job, "--dry-run")
}

func TestACancelStopsWhatFunctionsDo(t *testing.T) {
	b := newBench(t)
	b.deploy("offline-pace=2s")
	b.hurry()
	job := strings.TrimSpace(b.says(completed, "submit", b.document(30_000, ""), "--profile", "compact", "--fresh", "--start"))
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
