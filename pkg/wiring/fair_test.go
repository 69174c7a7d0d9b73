package wiring_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// party is a document of one party: as long as those of others, and no cell is the same.
func party(name string, chunks int) string {
	return strings.ReplaceAll(text(chunks), "The party", "Party "+name)
}

// crew makes workers that hold 16 claims together.
func crew(w *world) {
	w.model.takes = 2 * time.Second
	for n := range 4 {
		w.start(fmt.Sprint("worker-", n), nil)
	}
}

// busy is a huge document that holds all claims of a crew.
func busy(w *world) pipeline.JobID {
	crew(w)
	huge := w.submit(party("huge", 120)).ID
	time.Sleep(15 * time.Second)
	return huge
}

// took lets time pass until the jobs have ended, and returns how long each took from now.
func took(w *world, jobs []pipeline.JobID) []time.Duration {
	w.Helper()
	began, took := w.clock.Mono(), make([]time.Duration, len(jobs))
	for slices.Contains(took, 0) {
		time.Sleep(100 * time.Millisecond)
		if w.clock.Mono()-began > 2*time.Hour {
			w.Fatalf("not all have ended after 2 h: %v", took)
		}
		for i, id := range jobs {
			if took[i] == 0 && w.job(id).Status.Ended() {
				took[i] = w.clock.Mono() - began
			}
		}
	}
	return took
}

func TestFairness(t *testing.T) {
	t.Run("equal documents that come together end together", func(t *testing.T) {
		for n, chunks := range map[int]int{2: 22, 10: 22, 20: 12} { // the last are more than there are claims
			in(t, func(w *world) {
				busy(w)
				jobs := make([]pipeline.JobID, n)
				for i := range jobs {
					jobs[i] = w.submit(party(fmt.Sprint(i), chunks)).ID
				}
				took := took(w, jobs)
				ratio := float64(slices.Max(took)) / float64(slices.Min(took))
				t.Logf("%d documents: %.2f, %v", n, ratio, took)
				if ratio > 1.25 {
					t.Errorf("the slowest of %d took %.2f times as long as the fastest, want at most 1.25: %v", n, ratio, took)
				}
			})
		}
	})
	small := func(w *world) time.Duration { return took(w, []pipeline.JobID{w.submit(party("small", 4)).ID})[0] }
	for _, claims := range []int{200, 4} {
		t.Run(fmt.Sprintf("a small document does not wait behind a huge one that may hold %d claims", claims), func(t *testing.T) {
			bound := func(w *world) { w.policy.MaxJobClaims = claims }
			measured := func(times int, measure func(w *world) time.Duration) []time.Duration {
				var of []time.Duration // in order: who wakes first decides about some seconds
				for range times {
					in(t, func(w *world) { of = append(of, measure(w)) }, bound)
				}
				slices.Sort(of)
				t.Log(of)
				return of
			}
			alone := measured(7, func(w *world) time.Duration {
				crew(w)
				return small(w)
			})
			behind := measured(3, func(w *world) time.Duration {
				huge := busy(w)
				behind := small(w)
				if w.job(huge).Status.Ended() {
					t.Error("the huge document was not at work any more")
				}
				w.ends(huge, 24*time.Hour, pipeline.JobCompleted)
				return behind
			})
			if longest, usual := alone[6], behind[1]; usual > 2*longest {
				t.Errorf("it took %v alone and %v behind a huge one, want at most twice as long", longest, usual)
			}
		})
	}
}
