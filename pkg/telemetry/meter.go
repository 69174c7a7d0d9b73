package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"holdfast/pkg/pipeline"
)

// Meter counts until it is written down. Its methods may be called from any goroutine.
type Meter struct {
	stack string

	mu     sync.Mutex
	counts map[Metric]int
}

// NewMeter counts for a stack.
func NewMeter(stack string) *Meter { return &Meter{stack: stack, counts: map[Metric]int{}} }

// Add counts n more. Of 0 it will be written that there was none, which is not the same as nothing: where a metric has no
// value, an alarm that compares it with another has none either.
func (m *Meter) Add(metric Metric, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[metric] += n
}

// take is what was counted since the last time.
func (m *Meter) take() map[Metric]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.counts
	m.counts = map[Metric]int{}
	return counts
}

// Write writes what was counted since the last time as one line in CloudWatch's embedded metric format; nothing if
// nothing was.
func (m *Meter) Write(w io.Writer, now pipeline.Instant) error {
	counts := m.take()
	if len(counts) == 0 {
		return nil
	}
	type definition struct{ Name, Unit string }
	var metrics []definition
	line := map[string]any{Dimension: m.stack}
	for metric, n := range counts {
		metrics = append(metrics, definition{string(metric), "Count"})
		line[string(metric)] = n
	}
	slices.SortFunc(metrics, func(a, b definition) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	line["_aws"] = map[string]any{
		"Timestamp": int64(now),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": Namespace, "Dimensions": [][]string{{Dimension}}, "Metrics": metrics,
		}},
	}
	body, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	_, err = w.Write(append(body, '\n'))
	return err
}
