package sqlitestore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// What a receive costs while many messages wait and 64 are in flight: each round takes some, deletes them and sends
// as many again.
func BenchmarkReceive(b *testing.B) {
	for _, c := range []struct{ jobs, waiting, limit int }{
		{1, 100, 1}, {1, 20_000, 1}, {1, 20_000, 10}, {10, 20_000, 1}, {50, 20_000, 1}, {50, 20_000, 10},
	} {
		b.Run(fmt.Sprintf("jobs=%d/waiting=%d/limit=%d", c.jobs, c.waiting, c.limit), func(b *testing.B) {
			ctx := context.Background()
			q := openTest(b, b.TempDir(), Config{Owner: "worker"}).Queue("work", time.Hour, 5)
			send := func(from, n int) {
				messages := make([]pipeline.Message, n)
				for i := range messages {
					messages[i] = pipeline.Message{Job: pipeline.JobID(fmt.Sprint("job-", (from+i)%c.jobs)), Task: pipeline.WorkTask(from + i), Tenant: "tenant"}
				}
				if failed, err := q.Send(ctx, messages); err != nil || len(failed) > 0 {
					b.Fatal(err)
				}
			}
			receive := func() []pipeline.Delivery {
				got, err := q.Receive(ctx, c.limit, 0)
				if err != nil || len(got) != c.limit {
					b.Fatalf("got %d deliveries, %v, want %d", len(got), err, c.limit)
				}
				return got
			}
			sent := 0
			for ; sent < c.waiting; sent += 10 {
				send(sent, 10)
			}
			for n := 0; n < 64; n += c.limit {
				receive()
			}
			var took time.Duration
			for b.Loop() {
				begun := time.Now()
				got := receive()
				took += time.Since(begun)
				if _, err := q.Delete(ctx, got); err != nil {
					b.Fatal(err)
				}
				send(sent, c.limit)
				sent += c.limit
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs/receive")
		})
	}
}
