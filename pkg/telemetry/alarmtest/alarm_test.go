package alarmtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/telemetry/alarmtest"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func minutes(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// alarm makes an alarm of CloudFormation properties.
func alarm(t *testing.T, properties string) alarmtest.Alarm {
	t.Helper()
	all, err := alarmtest.Read([]byte(`{"Resources": {"A": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmName": "blue-A", `+properties+`}}, "B": {"Type": "AWS::SNS::Topic"}}}`), "blue")
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	return all["A"]
}

func single(rest string) string {
	return `"Namespace": "Holdfast", "MetricName": "Things", "Dimensions": [{"Name": "Stack", "Value": "blue"}], "Period": 300, ` + rest
}

var things = alarmtest.Metric{Namespace: "Holdfast", Name: "Things", Dimensions: "Stack=blue"}

func TestAnAlarmOfOneMetric(t *testing.T) {
	const atLeast3 = `"Statistic": "Sum", "Threshold": 3, "EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`
	for _, c := range []struct {
		name, rest string
		values     map[int]float64 // by minutes after noon
		at         int
		want       bool
	}{
		{"a sum over the threshold", atLeast3, map[int]float64{7: 2, 9: 1}, 10, true},
		{"a sum below it", atLeast3, map[int]float64{7: 2}, 10, false},
		{"what was before the window is none of it", atLeast3, map[int]float64{5: 2, 9: 1}, 10, false},
		{"what comes later is none of it", atLeast3, map[int]float64{9: 2, 11: 1}, 10, false},
		{"nothing measured, which is no breach", atLeast3, nil, 10, false},
		{
			"nothing measured, which is one", `"Statistic": "Sum", "Threshold": 1, "EvaluationPeriods": 1, "ComparisonOperator": "LessThanThreshold", "TreatMissingData": "breaching"`,
			map[int]float64{4: 1},
			10, true,
		},
		{
			"a maximum", `"Statistic": "Maximum", "Threshold": 900, "EvaluationPeriods": 2, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`,
			map[int]float64{2: 400, 3: 900, 4: 500, 8: 950},
			10, true,
		},
		{
			"a maximum is no sum", `"Statistic": "Maximum", "Threshold": 900, "EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`,
			map[int]float64{7: 500, 8: 500},
			10, false,
		},
		{
			"one window of four", `"Statistic": "Sum", "Threshold": 1, "EvaluationPeriods": 4, "DatapointsToAlarm": 1, "ComparisonOperator": "GreaterThanThreshold", "TreatMissingData": "notBreaching"`,
			map[int]float64{3: 2},
			20, true,
		},
		{
			"all windows must, and one does not", `"Statistic": "Sum", "Threshold": 1, "EvaluationPeriods": 2, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`,
			map[int]float64{9: 2},
			10, false,
		},
		{
			"at most", `"Statistic": "Sum", "Threshold": 1, "EvaluationPeriods": 1, "ComparisonOperator": "LessThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`,
			map[int]float64{9: 1},
			10, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen alarmtest.Seen
			for at, value := range c.values {
				seen.Put(things, minutes(at), value)
			}
			seen.Put(alarmtest.Metric{Namespace: "Holdfast", Name: "Things", Dimensions: "Stack=green"}, minutes(8), 1000)
			got, why, err := alarm(t, single(c.rest)).Rings(&seen, minutes(c.at))
			if err != nil || got != c.want {
				t.Errorf("got %v (%s), %v, want %v", got, why, err, c.want)
			}
		})
	}
}

// of is an alarm that rings while an expression over a and b is 1 or more.
func of(expression string) string {
	metric := func(id string) string {
		return fmt.Sprintf(`{"Id": %q, "ReturnData": false, "MetricStat": {"Metric": {"Namespace": "N", "MetricName": %q}, "Period": 300, "Stat": "Sum"}}`, id, id)
	}
	return fmt.Sprintf(`"Metrics": [{"Id": "e", "Expression": %q}, %s, %s], "Threshold": 1, "EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`,
		expression, metric("a"), metric("b"))
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		expression string
		a, b       map[int]float64
		want       bool
	}{
		{"a + b * 2", map[int]float64{9: -1}, map[int]float64{9: 1}, true},
		{"(a + b) * 2", map[int]float64{9: -1}, map[int]float64{9: 1}, false},
		{"a - b / 2", map[int]float64{9: 2}, map[int]float64{9: 2}, true},
		{"a + b", map[int]float64{9: 2}, nil, false},
		{"a > 1 AND b < 1", map[int]float64{9: 2}, map[int]float64{9: 0}, true},
		{"a > 1 AND b < 1", map[int]float64{9: 2}, map[int]float64{9: 1}, false},
		{"a >= 2 OR b == 5", map[int]float64{9: 1}, map[int]float64{9: 5}, true},
		{"a <= 0 OR b != 5", map[int]float64{9: 1}, map[int]float64{9: 5}, false},
		{"IF(a > 0 AND b < 1, 1, 0)", map[int]float64{9: 3}, map[int]float64{9: 0}, true},
		{"IF(a > 0 AND b < 1, 1, 0)", map[int]float64{9: 3}, nil, false},
		{"IF(a > 0 AND FILL(b, 0) < 1, 1, 0)", map[int]float64{9: 3}, map[int]float64{1: 3}, true},
		{"IF(a > 0 AND FILL(b, 0) < 1, 1, 0)", map[int]float64{9: 3}, nil, false}, // nothing to fill
		{"DIFF(a)", map[int]float64{9: 3}, nil, false},
		{"DIFF(a)", map[int]float64{4: 2, 9: 3}, nil, true},
		{"DIFF(a)", map[int]float64{4: 3, 9: 3}, nil, false},
		{"DIFF(a)", map[int]float64{-1: 2, 9: 3}, nil, true}, // over what is missing in between
		{"DIFF(FILL(a, 0))", map[int]float64{9: 3}, nil, true},
		{"DIFF(FILL(a, 0))", nil, nil, false},
	} {
		var seen alarmtest.Seen
		for name, values := range map[string]map[int]float64{"a": c.a, "b": c.b} {
			for at, value := range values {
				seen.Put(alarmtest.Metric{Namespace: "N", Name: name}, minutes(at), value)
			}
		}
		got, why, err := alarm(t, of(c.expression)).Rings(&seen, minutes(10))
		if err != nil || got != c.want {
			t.Errorf("%s of %v and %v: got %v (%s), %v, want %v", c.expression, c.a, c.b, got, why, err, c.want)
		}
	}
	for expression, want := range map[string]string{
		"a + ": "too early", "c + 1": `"c" is no metric`, "a b": "left over", "IF(a, 1)": `got ")"`, "a ? b": "not understood", "MAX(a)": "no function",
	} {
		if _, _, err := alarm(t, of(expression)).Rings(&alarmtest.Seen{}, noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}

func TestWhenAnAlarmRang(t *testing.T) {
	a := alarm(t, single(`"Statistic": "Sum", "Threshold": 2, "EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching"`))
	var seen alarmtest.Seen
	seen.Put(things, minutes(3), 1)
	seen.Put(things, minutes(6).Add(-time.Second), 1)
	when, _, err := a.Rang(&seen, noon, minutes(30))
	if err != nil || !when.Equal(minutes(6)) {
		t.Errorf("got %v, %v, want it at the sixth minute", when, err)
	}
	if when, why, err := a.Rang(&seen, minutes(9), minutes(30)); err != nil || !when.IsZero() {
		t.Errorf("got %v (%s), %v, want never: the first is too long ago", when, why, err)
	}
}

func TestLogLinesInTheEmbeddedMetricFormatAreRead(t *testing.T) {
	var seen alarmtest.Seen
	log := "START RequestId: 1\n" + `{"level":"INFO","msg":"swept"}` + "\n" +
		`{"Things":116,"Others":0,"Stack":"blue","_aws":{"CloudWatchMetrics":[{"Dimensions":[["Stack"]],"Metrics":[{"Name":"Things","Unit":"Count"},{"Name":"Others"}],"Namespace":"Holdfast"}],"Timestamp":1780000000123}}` + "\n"
	if err := seen.ReadLog(log); err != nil {
		t.Fatal(err)
	}
	if got := seen.Of(things); got != 116 || len(seen.Names()) != 2 {
		t.Errorf("got %v of %v, want 116 of two metrics", got, seen.Names())
	}
	for _, broken := range []string{
		`{"Stack":"blue","_aws":{"CloudWatchMetrics":[{"Dimensions":[["Stack"]],"Metrics":[{"Name":"Things"}],"Namespace":"Holdfast"}],"Timestamp":1}}`,
		`{"Things":1,"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Stack"]],"Metrics":[{"Name":"Things"}],"Namespace":"Holdfast"}],"Timestamp":1}}`,
		`{"CloudWatchMetrics"`,
	} {
		if err := seen.ReadLog(broken); err == nil {
			t.Errorf("%s: got no error", broken)
		}
	}
}

func TestAnAlarmThatCannotBeJudgedIsAnError(t *testing.T) {
	for _, properties := range []string{
		``, `"Period": 300`, single(`"EvaluationPeriods": 1, "ComparisonOperator": "LessThanLowerThreshold"`), of("a") + `, "MetricName": "M"`,
	} {
		template := `{"Resources": {"A": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmName": "A"` + strings.TrimSuffix(", "+properties, ", ") + `}}}}`
		if _, err := alarmtest.Read([]byte(template), "blue"); err == nil || !strings.Contains(err.Error(), "alarm A") {
			t.Errorf("%s: got %v", properties, err)
		}
	}
	if _, err := alarmtest.Read([]byte(`{`), "blue"); err == nil {
		t.Error("got no error of no template")
	}
}
