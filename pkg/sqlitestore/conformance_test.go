package sqlitestore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// openTest opens a store that is closed with the test.
func openTest(t testing.TB, dir string, cfg Config) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.CloseFile(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// sql runs a statement behind everybody's back, as the sqlite3 shell would.
func (s *Store) sql(t testing.TB, statement string, args ...any) {
	t.Helper()
	if err := s.write(context.Background(), func(tx *tx) error {
		_, err := tx.exec(statement, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// raw puts a row of which only these columns are there.
func (s *Store) raw(t testing.TB, ref pipeline.Ref, columns map[string]any) {
	t.Helper()
	s.remove(t, ref)
	names, values := []string{"job", "task", "shard"}, []any{ref.Job, ref.ID, ref.DueShard()}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if name == "job" || name == "task" {
			continue
		}
		names, values = append(names, name), append(values, asColumn(columns[name]))
	}
	s.sql(t, `INSERT INTO tasks (`+strings.Join(names, ", ")+`) VALUES (?`+strings.Repeat(", ?", len(names)-1)+`)`, values...)
}

func asColumn(v any) any {
	switch v := v.(type) {
	case []int64, pipeline.Failure, map[string]any, []any:
		return text(v)
	}
	return v
}

func (s *Store) remove(t testing.TB, ref pipeline.Ref) {
	t.Helper()
	s.sql(t, `DELETE FROM tasks WHERE job = ? AND task = ?`, ref.Job, ref.ID)
}

func (s *Store) harness() pipelinetest.Harness {
	return pipelinetest.Harness{Store: s, Blobs: s, Raw: s.raw, Delete: s.remove}
}

func TestStore(t *testing.T) {
	s := openTest(t, t.TempDir(), Config{})
	pipelinetest.TestStore(t, func(*testing.T) pipelinetest.Harness { return s.harness() })
}

func TestDifferential(t *testing.T) {
	for seed := range uint64(4) {
		reference := memory.New()
		pipelinetest.Differential(t, seed, 1000, openTest(t, t.TempDir(), Config{}).harness(), pipelinetest.Harness{
			Store: reference, Blobs: reference,
			Raw: func(t testing.TB, ref pipeline.Ref, columns map[string]any) {
				if err := reference.PutRaw(ref, columns); err != nil {
					t.Fatal(err)
				}
			},
			Delete: func(_ testing.TB, ref pipeline.Ref) { reference.DeleteTask(ref) },
		})
	}
}

func openQueue(t *testing.T, cfg pipelinetest.QueueConfig) pipelinetest.QueueHarness {
	s := openTest(t, t.TempDir(), Config{Now: cfg.Now})
	q := s.Queue("work", cfg.Visibility, cfg.MaxReceives)
	return pipelinetest.QueueHarness{Queue: q, Raw: func(t testing.TB, body []byte) {
		t.Helper()
		if err := q.send(context.Background(), body); err != nil {
			t.Fatal(err)
		}
	}}
}

func TestQueue(t *testing.T) {
	pipelinetest.TestQueue(t, openQueue)
	pipelinetest.TestFairQueue(t, openQueue)
}

func BenchmarkPutReplyFrom64Goroutines(b *testing.B) {
	s := openTest(b, b.TempDir(), Config{})
	body := strings.Repeat("x", 700)
	var n int64
	var group pipeline.Group
	keys := make(chan int)
	begun := time.Now()
	for range 64 {
		group.Go(func() {
			for i := range keys {
				if _, err := s.PutReply(context.Background(), pipeline.Reply{Key: pipeline.KeyOf("t", "m", i, pipeline.Request{}), Text: body}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		keys <- int(n)
		n++
	}
	close(keys)
	group.Wait()
	b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "replies/s")
}
