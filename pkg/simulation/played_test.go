package simulation_test

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/simulation"
)

// spy counts the calls of ports that went well, by their names.
type spy struct {
	mu    sync.Mutex
	calls simulation.Tally
}

func (s *spy) around(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
	err := do(ctx)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[op.Name]++
	}
	return err
}

// harness is a memory store whose calls are counted.
func (s *spy) harness() pipelinetest.Harness {
	store := memory.New()
	return pipelinetest.Harness{
		Store: pipelinetest.Wrap(store, s.around), Blobs: pipelinetest.WrapBlobs(store, s.around),
		Raw: func(t testing.TB, ref pipeline.Ref, columns map[string]any) {
			if err := store.PutRaw(ref, columns); err != nil {
				t.Fatal(err)
			}
		},
		Delete: func(_ testing.TB, ref pipeline.Ref) { store.DeleteTask(ref) },
	}
}

func methods[Port any]() (names []string) {
	port := reflect.TypeFor[Port]()
	for i := range port.NumMethod() {
		names = append(names, port.Method(i).Name)
	}
	return names
}

// A simulation over memory says something of SQLite and DynamoDB as far as these do as memory does. The differential
// compares stores; of queues, whose order is their own, and of blobs the conformance suites are what memory and the
// others are held to.
func TestTheOtherStoresAreHeldToEveryCallThatWorldsMake(t *testing.T) {
	worlds := someWorlds(t).calls
	for _, held := range []struct {
		by    string
		calls []string
		play  func(s *spy)
	}{
		{"the differential against SQLite", methods[pipeline.Store](), func(s *spy) { play(t, s, 4, 1000) }},
		{"the differential against DynamoDB", methods[pipeline.Store](), func(s *spy) { play(t, s, 6, 300) }},
		{"the conformance suite of stores", methods[pipeline.Blobs](), func(s *spy) {
			pipelinetest.TestStore(t, func(*testing.T) pipelinetest.Harness { return s.harness() })
		}},
		{"the conformance suite of queues", methods[pipeline.Queue](), func(s *spy) {
			pipelinetest.TestQueue(t, func(_ *testing.T, cfg pipelinetest.QueueConfig) pipelinetest.QueueHarness {
				queue := memory.NewQueue(memory.QueueConfig{Visibility: cfg.Visibility, MaxReceives: cfg.MaxReceives, Now: cfg.Now})
				return pipelinetest.QueueHarness{
					Queue: pipelinetest.WrapQueue(queue, s.around), Raw: func(_ testing.TB, body []byte) { queue.SendRaw(body) },
				}
			})
		}},
	} {
		s := &spy{calls: simulation.Tally{}}
		held.play(s)
		used := 0
		for _, call := range held.calls {
			if worlds[call] > 0 {
				used++
			}
			if worlds[call] > 0 && s.calls[call] == 0 {
				t.Errorf("%s never makes the call %s with success, which worlds make", held.by, call)
			}
		}
		if used == 0 {
			t.Errorf("worlds make none of the calls %v", held.calls)
		}
		t.Logf("%s: worlds make %d of %d calls", held.by, used, len(held.calls))
	}
}

// play is the differential as the test of a store runs it: so many seeds, each with so many steps.
func play(t *testing.T, s *spy, seeds uint64, steps int) {
	t.Helper()
	for seed := range seeds {
		pipelinetest.Differential(t, seed, steps, s.harness(), (&spy{calls: simulation.Tally{}}).harness())
	}
}
