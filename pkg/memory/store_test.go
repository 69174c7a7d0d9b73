package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func harness(t testing.TB) pipelinetest.Harness {
	store := memory.New()
	return pipelinetest.Harness{
		Store: store,
		Blobs: store,
		Raw: func(t testing.TB, ref pipeline.Ref, columns map[string]any) {
			if err := store.PutRaw(ref, columns); err != nil {
				t.Fatal(err)
			}
		},
		Delete: func(_ testing.TB, ref pipeline.Ref) { store.DeleteTask(ref) },
	}
}

func TestStore(t *testing.T) {
	pipelinetest.TestStore(t, func(t *testing.T) pipelinetest.Harness { return harness(t) })
}

func openQueue(_ *testing.T, cfg pipelinetest.QueueConfig) pipelinetest.QueueHarness {
	queue := memory.NewQueue(memory.QueueConfig{Visibility: cfg.Visibility, MaxReceives: cfg.MaxReceives, Now: cfg.Now})
	return pipelinetest.QueueHarness{
		Queue: queue,
		Raw:   func(_ testing.TB, body []byte) { queue.SendRaw(body) },
	}
}

func TestQueue(t *testing.T) {
	pipelinetest.TestQueue(t, openQueue)
	pipelinetest.TestFairQueue(t, openQueue)
}
