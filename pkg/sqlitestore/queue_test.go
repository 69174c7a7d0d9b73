package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

func message(n int) pipeline.Message {
	return pipeline.Message{Job: "j", Task: pipeline.WorkTask(n)}
}

func TestQueueBetweenProcesses(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	mine, other := openTest(t, dir, Config{}), openTest(t, dir, Config{})

	t.Run("a receiver that waits gets what another process sends", func(t *testing.T) {
		looks := make(chan struct{}, 1000)
		now := pipeline.At(time.Now())
		waiting := openTest(t, dir, Config{Now: func() pipeline.Instant {
			looks <- struct{}{}
			return now
		}})
		got := make(chan []pipeline.Delivery, 1)
		go func() {
			deliveries, err := waiting.Queue("a", time.Minute, 3).Receive(ctx, 10, 5*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- deliveries
		}()
		for range 3 { // it finds nothing, and looks again before its wait is over
			select {
			case <-looks:
			case early := <-got:
				t.Fatalf("got %d deliveries before anything was sent", len(early))
			}
		}
		sender := openTest(t, dir, Config{Now: func() pipeline.Instant { return now }})
		if _, err := sender.Queue("a", time.Minute, 3).Send(ctx, []pipeline.Message{message(1)}); err != nil {
			t.Fatal(err)
		}
		if deliveries := <-got; len(deliveries) != 1 {
			t.Errorf("got %d deliveries, want 1", len(deliveries))
		}
	})

	t.Run("queues do not see each other's messages", func(t *testing.T) {
		if _, err := mine.Queue("b", time.Minute, 3).Send(ctx, []pipeline.Message{message(1)}); err != nil {
			t.Fatal(err)
		}
		got, err := mine.Queue("c", time.Minute, 3).Receive(ctx, 10, 0)
		if err != nil || len(got) != 0 {
			t.Errorf("got %v, %v, want nothing", got, err)
		}
	})

	t.Run("a receiver that is stopped says why", func(t *testing.T) {
		stopping, stop := context.WithCancelCause(ctx)
		stop(pipeline.ErrDraining)
		if _, err := mine.Queue("d", time.Minute, 3).Receive(stopping, 10, time.Minute); !errors.Is(err, pipeline.ErrDraining) {
			t.Errorf("got %v, want the cause", err)
		}
	})

	t.Run("sixteen receivers share what is sent, each message once", func(t *testing.T) {
		const messages = 200
		q := mine.Queue("e", time.Minute, 3)
		for n := range messages {
			if _, err := q.Send(ctx, []pipeline.Message{message(n)}); err != nil {
				t.Fatal(err)
			}
		}
		bodies := make(chan string, messages*2)
		var group pipeline.Group
		for i := range 16 {
			q := []*Store{mine, other}[i%2].Queue("e", time.Minute, 3)
			group.Go(func() {
				for {
					got, err := q.Receive(ctx, 3, 0)
					if err != nil {
						t.Error(err)
					}
					if len(got) == 0 {
						return
					}
					for _, d := range got {
						bodies <- string(d.Body)
					}
				}
			})
		}
		group.Wait()
		close(bodies)
		seen := map[string]int{}
		for body := range bodies {
			seen[body]++
		}
		for body, times := range seen {
			if times != 1 {
				t.Errorf("%s was delivered %d times", body, times)
			}
		}
		if len(seen) != messages {
			t.Errorf("%d messages were delivered, want %d", len(seen), messages)
		}
	})
}

func TestQueueOrder(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, t.TempDir(), Config{})

	t.Run("what is in flight in one queue counts in no other", func(t *testing.T) {
		work, control := s.Queue("work", time.Minute, 3), s.Queue("control", time.Minute, 3)
		for _, q := range []*Queue{work, control} {
			for n, job := range []pipeline.JobID{"a", "a", "b"} {
				if _, err := q.Send(ctx, []pipeline.Message{{Job: job, Task: pipeline.WorkTask(n)}}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := q.Receive(ctx, 1, 0)
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, %v, want one", got, err)
			}
			if m, _ := pipeline.DecodeMessage(got[0].Body); m.Job != "a" {
				t.Errorf("queue %s: got a message of %s, want the oldest", q.name, m.Job)
			}
		}
	})

	t.Run("the shares are found by indexes, without a walk of the messages", func(t *testing.T) {
		for name, query := range map[string]string{"shares": shares, "anyVisible": anyVisible, "glance": glance, "visible": visible} {
			var steps []string
			if err := s.query(ctx, func(row scanner) error {
				var ignored, detail any
				err := row.Scan(&ignored, &ignored, &ignored, &detail)
				steps = append(steps, fmt.Sprint(detail))
				return err
			}, `EXPLAIN QUERY PLAN `+query, sql.Named("queue", "work"), sql.Named("now", 1), sql.Named("job", "a"), sql.Named("limit", 1)); err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(steps, "; ")
			if strings.Contains(plan, "SCAN messages") || strings.Contains(plan, "TEMP B-TREE") || !strings.Contains(plan, "messages_waiting (queue=? AND job") {
				t.Errorf("%s: got %s, want searches by queue and job", name, plan)
			}
			if name == "shares" && !strings.Contains(plan, "messages_taken (queue=? AND job=? AND visible_at>?)") {
				t.Errorf("%s: got %s, want what is in flight by its own index", name, plan)
			}
		}
	})
}
