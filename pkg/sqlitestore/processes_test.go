package sqlitestore

import (
	"context"
	"fmt"
	"testing"

	"holdfast/pkg/pipeline"
)

func startTogether(t *testing.T, child, dir string, n int) (all []*process) {
	t.Helper()
	for i := range n {
		all = append(all, startProcess(t, child, dir, fmt.Sprintf("p%d-", i)))
	}
	for _, p := range all {
		p.begin()
	}
	return all
}

func TestSeveralProcesses(t *testing.T) {
	ctx := context.Background()

	t.Run("several processes may make the store at once", func(t *testing.T) {
		dir := t.TempDir()
		for _, p := range startTogether(t, "open", dir, 6) {
			p.rest(t)
		}
		s := openTest(t, dir, Config{})
		if _, err := s.Job(ctx, "none"); err == nil {
			t.Error("an empty store has a job")
		}
	})

	t.Run("a task is claimed by one process", func(t *testing.T) {
		dir := t.TempDir()
		s := openTest(t, dir, Config{})
		var rows []pipeline.Task
		for n := range racedTasks {
			rows = append(rows, pipeline.Task{Ref: pipeline.Ref{Job: "race", ID: pipeline.WorkTask(n)}, Status: pipeline.TaskPending, Stages: 1})
			if len(rows) == pipeline.MaxWrite {
				if _, err := s.PutTasks(ctx, rows); err != nil {
					t.Fatal(err)
				}
				rows = nil
			}
		}
		claimed := map[string]int{}
		for _, p := range startTogether(t, "claim", dir, 3) {
			for _, id := range p.rest(t) {
				claimed[id]++
			}
		}
		for id, times := range claimed {
			if times != 1 {
				t.Errorf("%s was claimed %d times", id, times)
			}
		}
		if len(claimed) != racedTasks {
			t.Errorf("%d tasks were claimed, want %d", len(claimed), racedTasks)
		}
		row, err := s.Task(ctx, pipeline.Ref{Job: "race", ID: pipeline.WorkTask(7)})
		if err != nil || row.Generation != 1 || row.Attempts != 1 {
			t.Errorf("got %+v, %v, want generation and attempts 1", row, err)
		}
	})

	t.Run("all write at once and none starves", func(t *testing.T) {
		dir := t.TempDir()
		acknowledged := 0
		for _, p := range startTogether(t, "write", dir, 4) {
			acknowledged += len(p.rest(t))
		}
		if want := 4 * writtenReplies; acknowledged != want {
			t.Errorf("%d replies were acknowledged, want %d", acknowledged, want)
		}
		if got := countRows(t, openTest(t, dir, Config{}), "replies"); got != acknowledged {
			t.Errorf("%d replies are stored, want %d", got, acknowledged)
		}
	})
}

func TestKill(t *testing.T) {
	for _, after := range []int{1, 60, 200} {
		t.Run(fmt.Sprintf("what was acknowledged survives a kill after %d writes", after), func(t *testing.T) {
			dir := t.TempDir()
			p := startProcess(t, "write", dir, "k")
			p.begin()
			var acknowledged []pipeline.ReplyKey
			for p.lines.Scan() {
				acknowledged = append(acknowledged, pipeline.ReplyKey(p.lines.Text()))
				if len(acknowledged) == after {
					_ = p.cmd.Process.Kill()
				}
			}
			_ = p.cmd.Wait()
			s := openTest(t, dir, Config{})
			for _, key := range acknowledged {
				found, _, err := s.Replies(context.Background(), []pipeline.ReplyKey{key})
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := found[key]; !ok {
					t.Errorf("reply %s was acknowledged and is gone", key)
				}
			}
			var verdict string
			if err := s.reads.QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
				t.Errorf("integrity check: got %q, %v", verdict, err)
			}
		})
	}

	t.Run("a process that ends without closing leaves everything", func(t *testing.T) {
		dir := t.TempDir()
		p := startProcess(t, "forget", dir, "")
		p.begin()
		p.rest(t)
		openTest(t, dir, Config{})
	})
}

func countRows(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	if err := s.reads.QueryRow(`SELECT COUNT(*) FROM ` + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
