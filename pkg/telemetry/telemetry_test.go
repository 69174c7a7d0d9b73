package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALineOfMetricsIsInTheEmbeddedMetricFormat(t *testing.T) {
	m := telemetry.NewMeter("blue")
	m.Add(telemetry.PaidCalls, 100)
	m.Add(telemetry.PaidCalls, 16)
	m.Add(telemetry.CellsFinished, 12)
	m.Add(telemetry.TasksAbandoned, 0)
	var out bytes.Buffer
	if err := m.Write(&out, 1_780_000_000_123); err != nil {
		t.Fatal(err)
	}
	want := `{"CellsFinished":12,"PaidCalls":116,"Stack":"blue","TasksAbandoned":0,"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Stack"]],` +
		`"Metrics":[{"Name":"CellsFinished","Unit":"Count"},{"Name":"PaidCalls","Unit":"Count"},{"Name":"TasksAbandoned","Unit":"Count"}],"Namespace":"Holdfast"}],"Timestamp":1780000000123}}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("it is no JSON")
	}
	out.Reset()
	if err := m.Write(&out, 1_780_000_001_123); err != nil || out.Len() != 0 {
		t.Errorf("got %q and %v, want nothing: it was written", out.String(), err)
	}
}

func TestEveryTaskThatIsGivenUpIsCountedOnce(t *testing.T) {
	m := telemetry.NewMeter("blue")
	inner := memory.New()
	store := telemetry.Store(inner, m)
	ctx, now := t.Context(), pipelinetest.T0
	abandoned := pipeline.Verdict{Status: pipeline.TaskAbandoned}
	reason := pipeline.Fail(pipeline.Invalid, "no")
	put := func(n int) pipeline.Task {
		row := pipelinetest.NewRow("0123456789-1", pipeline.WorkTask(n))
		if _, err := store.PutTasks(ctx, []pipeline.Task{row}); err != nil {
			t.Fatal(err)
		}
		return row
	}
	claim := func(n int) pipeline.Task {
		row, err := store.Claim(ctx, pipelinetest.ClaimOf(put(n), "worker", now))
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	ended := claim(0)
	_, first := store.End(ctx, pipelinetest.EndOf(ended, abandoned, reason, now))
	_, again := store.End(ctx, pipelinetest.EndOf(ended, abandoned, reason, now))
	_, done := store.End(ctx, pipelinetest.EndOf(claim(1), pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, now))
	lapsed := claim(2)
	late := now.Add(pipeline.DefaultPolicy().ClaimTTL + pipeline.DefaultPolicy().MaxSkew + time.Millisecond)
	_, expired := store.Expire(ctx, pipelinetest.ExpireOf(lapsed, abandoned, late))
	_, closed := store.Close(ctx, pipeline.CloseWrite{Seen: put(3), Status: pipeline.TaskAbandoned, Reason: reason, Due: now})
	if err := errors.Join(first, done, expired, closed); err != nil || !errors.Is(again, pipeline.ErrFenced) {
		t.Fatalf("got %v, and for the second end %v", err, again)
	}
	var out bytes.Buffer
	if err := m.Write(&out, now); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["TasksAbandoned"] != 3.0 {
		t.Errorf("got %s, want three", out.String())
	}
}

func TestMetricsAreNamedOnce(t *testing.T) {
	seen := map[telemetry.Metric]bool{}
	for _, m := range telemetry.Metrics() {
		if seen[m] {
			t.Errorf("%s twice", m)
		}
		seen[m] = true
	}
}
