package smoke_test

import (
	"testing"
	"time"

	"holdfast/pkg/smoke"
)

func TestAStackThatKeepsItsPromises(t *testing.T) {
	in(t, func(b *bench, r smoke.Report, err error) {
		if err != nil || !r.Held() {
			b.Errorf("got error %v, want every promise kept", err)
		}
	})
}

// Stopped in the middle of any check, it removes what it made.
func TestACanaryThatIsStoppedLeavesNothing(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second, 10 * time.Second, 62 * time.Second, 65 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			in(t, func(b *bench, r smoke.Report, err error) {
				if err != nil || r.Held() || r.Left > 0 {
					b.Errorf("got error %v, held %v, %d jobs left; want that it was stopped and left none", err, r.Held(), r.Left)
				}
				jobs, _, err := b.back.Store.Jobs(t.Context(), smoke.Tenant, "", 100)
				if err != nil || len(jobs) > 0 {
					b.Errorf("%d of its jobs are there, error %v", len(jobs), err)
				}
				letters, _, err := b.back.Queues.Work.DeadLetters(t.Context(), "")
				if err != nil || len(letters) > 0 {
					b.Errorf("%d of its dead letters are there, error %v", len(letters), err)
				}
			}, func(b *bench) { b.stopAfter = after })
		})
	}
}
