package sqlitestore

import (
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

func TestRelease(t *testing.T) {
	dir := t.TempDir()
	open := func(owner string) (*Store, *Queue) {
		s, err := Open(t.Context(), dir, Config{Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.CloseFile() })
		return s, s.Queue("work", time.Hour, 5)
	}
	dead, deadQueue := open("dead")
	_, livingQueue := open("living")
	send := func(n int) {
		t.Helper()
		if _, err := deadQueue.Send(t.Context(), []pipeline.Message{{Job: "j", Task: pipeline.WorkTask(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(q *Queue) []pipeline.Delivery {
		t.Helper()
		got, err := q.Receive(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	send(1)
	delayed := receive(deadQueue)
	if err := deadQueue.Delay(t.Context(), delayed[0], time.Minute); err != nil {
		t.Fatal(err)
	}
	send(2)
	if got := receive(livingQueue); len(got) != 1 {
		t.Fatalf("got %d deliveries for the living, want 1", len(got))
	}
	send(3)
	if got := receive(deadQueue); len(got) != 1 {
		t.Fatalf("got %d deliveries for the dead, want 1", len(got))
	}
	if err := dead.Release(t.Context(), "dead"); err != nil {
		t.Fatal(err)
	}
	got := receive(livingQueue)
	if len(got) != 1 {
		t.Fatalf("got %d deliveries after the release, want the one that the dead took and did nothing with", len(got))
	}
	if m, err := pipeline.DecodeMessage(got[0].Body); err != nil || m.Task != pipeline.WorkTask(3) {
		t.Errorf("got %v (%v), want work#00003: what was put off, or is another's, stays where it is", m.Task, err)
	}
	if again := receive(livingQueue); len(again) != 0 {
		t.Errorf("got %d more deliveries, want none", len(again))
	}
}
