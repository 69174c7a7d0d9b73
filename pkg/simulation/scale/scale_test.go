package scale

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
)

var (
	full      = flag.Bool("full", false, "the whole size: make scale")
	documents = flag.Int("documents", 100, "of the fifty workers, at the whole size")
	workers   = flag.Int("workers", 50, "their number, at the whole size")
	claims    = flag.Int("claims", 4, "chunks that each of them holds at once")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sound checks what must hold of every deployment, and prints its figures.
func (w *world) sound(jobs []pipeline.JobID, chunks int) {
	w.Helper()
	w.end()
	answered, deferrals, rows, claims := 0, 0, 0, int64(0)
	for _, id := range jobs {
		job, err := w.inner.Job(w.Context(), id)
		if err != nil {
			w.Fatal(err)
		}
		body, err := w.inner.Blob(w.Context(), job.Result)
		if err != nil {
			w.Fatalf("job %s is %s (%s): %v", id, job.Status, job.Reason, err)
		}
		r, err := pipeline.Decode[pipeline.Result](body, "result")
		if err != nil {
			w.Fatal(err)
		}
		want := len(r.Manifest.Chunks) * perChunk
		if job.Status != pipeline.JobCompleted || r.Counts.Answered != want || r.Counts.Cells != want || len(r.Missing) > 0 || want < chunks*perChunk {
			w.Errorf("job %s is %s with the counts %+v and %d missing, want all of %d cells answered, at least %d", id, job.Status, r.Counts, len(r.Missing), want, chunks*perChunk)
		}
		answered += r.Counts.Answered
		tasks, err := pipeline.AllTasks(w.Context(), w.inner, id)
		if err != nil {
			w.Fatal(err)
		}
		for _, row := range tasks {
			deferrals += row.Deferrals
			claims += row.Generation
			rows++
			if size := rowSize(row); size > 1024 {
				w.Errorf("row %s has %d bytes: every renewal is charged for two units", row.ID, size)
			}
		}
	}
	if asked := w.model.sum(); asked != answered || len(w.model.asked) != answered {
		w.Errorf("asked %d times for %d questions, %d answered: want each asked once", asked, len(w.model.asked), answered)
	}
	w.Logf("%d rows, %d claims, %d deferrals", rows, claims, deferrals)
	if claims != int64(rows) {
		w.Errorf("%d claims of %d rows: attempts ran out of their time, or were lost", claims, rows)
	}
	w.figures(answered, "calls")
}

func (m *model) sum() (n int) {
	for _, times := range m.asked {
		n += times
	}
	return n
}

// figures checks the limits and prints what was counted, of so many of what was done.
func (w *world) figures(done int, what string) {
	w.Helper()
	w.end()
	took := (w.clock.Mono() - w.began).Round(time.Second)
	m := w.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Logf("%d %s in %v: %.0f a second, at most %d at once; %.2f million tokens a minute", done, what, took, float64(done)/took.Seconds(), w.model.most, float64(w.model.used)/took.Minutes()/1e6)
	w.Logf("price of the tables: $%.2f, $%.2f a million %s", m.total.price(), 1e6*m.total.price()/float64(done), what)
	w.Logf("the work queue: at most %d messages wait, %d in flight", w.visible, w.inFlight)
	w.Logf("the tables: %d requests, %.0f write units, %.0f read units; %.2f and %.2f for each", m.requests, m.total.writes, m.total.reads, m.total.writes/float64(done), m.total.reads/float64(done))
	for _, class := range slices.Sorted(keys(m.peaks)) {
		w.Logf("the busiest second of a partition %-12s %6.0f of %.0f write units, %6.0f of %.0f read units", class, m.peaks[class].writes, partitionWrites, m.peaks[class].reads, partitionReads)
	}
	for _, op := range slices.Sorted(keys(m.ops)) {
		w.Logf("  %-12s %8d", op, m.ops[op])
	}
	for op, n := range m.calls {
		if m.ops[op] == 0 {
			w.Errorf("%s was called %d times, and nothing was charged for it", op, n)
		}
	}
	if len(m.throttled) > 0 {
		w.Errorf("throttled, by kind of partition: %v; want never", m.throttled)
	}
	if w.inFlight > inFlightLimit {
		w.Errorf("%d messages in flight, and a queue takes %d", w.inFlight, inFlightLimit)
	}
	if letters, _, err := w.queues[1].DeadLetters(w.Context(), ""); err != nil || len(letters) > 0 {
		w.Errorf("%d dead letters (%v)", len(letters), err)
	}
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func size(whole, part int) int {
	if *full {
		return whole
	}
	return part
}

func TestOneDocumentOfTenThousandCallsOnLambda(t *testing.T) {
	chunks := size(91, 9)
	in(t, 30_000_000, func(w *world) {
		w.eventSource(16, 200)
		jobs := []pipeline.JobID{w.submit("tenant", "long", chunks)}
		w.took(jobs)
		w.sound(jobs, chunks)
	})
}

func TestManyDocumentsAtOnceOnFiftyWorkers(t *testing.T) {
	documents, workers, chunks := size(*documents, 4), size(*workers, 4), size(30, 5)
	in(t, 100_000_000, func(w *world) {
		w.fleet(workers, 32, *claims)
		var jobs []pipeline.JobID
		for n := range documents {
			jobs = append(jobs, w.submit("tenant", fmt.Sprintf("document-%03d", n), chunks))
		}
		w.took(jobs)
		w.sound(jobs, chunks)
	})
}
