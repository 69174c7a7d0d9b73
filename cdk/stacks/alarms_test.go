package stacks_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/cdk/template"
	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
	"holdfast/pkg/telemetry/alarmtest"
)

func TestAlarms(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		p := d.settings.Policy
		alarms := map[string]template.Resource{}
		for _, alarm := range d.workers.Of("AWS::CloudWatch::Alarm") {
			alarms[strings.TrimPrefix(alarm.Text("AlarmName"), d.settings.Stack+"-")] = alarm
			for _, actions := range []string{"AlarmActions", "OKActions"} {
				if to := template.Texts(alarm.Get(actions)); len(to) != 1 || !strings.HasSuffix(to[0], ":holdfast-alarms") {
					t.Errorf("%s: %s go to %v", alarm.ID, actions, to)
				}
			}
			if len(alarm.Text("AlarmDescription")) < 40 {
				t.Errorf("%s does not say what to do", alarm.ID)
			}
		}
		for name, want := range map[string]struct {
			threshold, windows float64
			comparison         string
			missing            string
		}{
			"Abandoned":          {3, 1, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"ControlDeadLetters": {1, 1, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"WorkDeadLetters":    {1, 1, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"ControlWaits":       {p.RingLimit.Seconds(), 2, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"WorkWaits":          {p.RingLimit.Seconds(), 2, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"Waste":              {1, 3, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"Unclaimable":        {1, 4, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"SilentReaper":       {1, 1, "LessThanThreshold", "breaching"},
		} {
			alarm, is := alarms[name]
			if !is {
				t.Errorf("there is no alarm %s", name)
				continue
			}
			delete(alarms, name)
			same(t, name, []any{alarm.Number("Threshold"), alarm.Number("EvaluationPeriods"), alarm.Text("ComparisonOperator"), alarm.Text("TreatMissingData")},
				[]any{want.threshold, want.windows, want.comparison, want.missing})
		}
		if len(alarms) > 0 {
			t.Errorf("alarms that nobody promised: %v", alarms)
		}
		same(t, "mails", len(d.workers.Of("AWS::SNS::Subscription")), map[bool]int{true: 1}[d.settings.AlarmAddress != ""])
		same(t, "dashboards", len(d.workers.Of("AWS::CloudWatch::Dashboard")), 1)
	})
}

var update = flag.Bool("update", false, "write testdata/alarms.json anew")

// The tests of pkg/function hold what processes write against these alarms, in virtual time. They read a file, because
// they know nothing of stacks; this keeps it true.
func TestTheAlarmsThatAreTriedAreThoseOfTheTemplate(t *testing.T) {
	const file = "testdata/alarms.json"
	alarms := map[string]any{}
	for _, alarm := range deployed(t, "stack=blue").workers.Of("AWS::CloudWatch::Alarm") {
		alarms[alarm.ID] = map[string]any{"Type": alarm.Type, "Properties": alarm.Properties}
	}
	got, err := json.MarshalIndent(map[string]any{"Resources": alarms}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: the alarms differ from %s: cd cdk && go test ./stacks -run %s -update, then go test ./pkg/function", err, file, t.Name())
	}
}

// What SQS measures is no log line of ours: that the alarms read it under the names that it has, and what they make of it.
func TestAlarmsOfQueues(t *testing.T) {
	d := deployed(t)
	body, err := json.Marshal(d.workers)
	if err != nil {
		t.Fatal(err)
	}
	alarms, err := alarmtest.Read(body, d.settings.Stack)
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, queue := range []string{pipeline.ControlQueue, pipeline.WorkQueue} {
		live, dead := sqsqueue.Names("holdfast", queue)
		process := map[string]config.Process{pipeline.ControlQueue: config.Control, pipeline.WorkQueue: config.Work}[queue]
		name := strings.ToUpper(string(process[:1])) + string(process[1:])
		of := func(queue, metric string) alarmtest.Metric {
			return alarmtest.Metric{Namespace: "AWS/SQS", Name: metric, Dimensions: "QueueName=" + queue}
		}
		limit := d.settings.Policy.RingLimit.Seconds()
		for _, c := range []struct {
			what, alarm string
			metric      alarmtest.Metric
			values      map[int]float64 // by minutes before noon
			want        bool
		}{
			{"the first letter of a queue that was never asked", "DeadLetters", of(dead, "ApproximateNumberOfMessagesVisible"), map[int]float64{3: 1, 2: 1, 1: 1}, true},
			{"one more", "DeadLetters", of(dead, "ApproximateNumberOfMessagesVisible"), map[int]float64{9: 4, 6: 4, 3: 5}, true},
			{"the same as before", "DeadLetters", of(dead, "ApproximateNumberOfMessagesVisible"), map[int]float64{9: 4, 6: 4, 3: 4}, false},
			{"fewer", "DeadLetters", of(dead, "ApproximateNumberOfMessagesVisible"), map[int]float64{9: 4, 6: 4, 3: 1}, false},
			{"nothing measured", "DeadLetters", of(dead, "ApproximateNumberOfMessagesVisible"), nil, false},
			{"messages that wait in the live queue", "DeadLetters", of(live, "ApproximateNumberOfMessagesVisible"), map[int]float64{9: 1, 3: 500}, false},
			{"a message too old for ten minutes", "Waits", of(live, "ApproximateAgeOfOldestMessage"), map[int]float64{8: limit, 3: limit + 300}, true},
			{"a message too old for five minutes", "Waits", of(live, "ApproximateAgeOfOldestMessage"), map[int]float64{8: limit - 1, 3: limit + 299}, false},
			{"letters are as old as they like", "Waits", of(dead, "ApproximateAgeOfOldestMessage"), map[int]float64{8: 1e6, 3: 1e6}, false},
		} {
			var seen alarmtest.Seen
			for before, value := range c.values {
				seen.Put(c.metric, noon.Add(-time.Duration(before)*time.Minute), value)
			}
			alarm, is := alarms[name+c.alarm]
			if !is {
				t.Fatalf("there is no alarm %s; there are %v", name+c.alarm, slices.Collect(maps.Keys(alarms)))
			}
			rings, why, err := alarm.Rings(&seen, noon)
			if err != nil || rings != c.want {
				t.Errorf("%s: got %v (%s), %v, want %v", c.what, rings, why, err, c.want)
			}
		}
	}
}
