package sqsqueue_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
)

// Cases S-04, S-09 and S-10, of what can be read from the settings alone.
func TestSettings(t *testing.T) {
	p := pipeline.DefaultPolicy()
	live, dead := sqsqueue.Attributes(p, "arn"), sqsqueue.DeadAttributes(p)
	seconds := func(text string) time.Duration {
		t.Helper()
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second
	}
	if got := seconds(live["VisibilityTimeout"]); got < 6*p.FunctionTimeout() || p.FunctionTimeout() <= p.AttemptTimeout {
		t.Errorf("a delivery is invisible for %v, want six times a function's %v, which outlasts an attempt of %v", got, p.FunctionTimeout(), p.AttemptTimeout)
	}
	p.AttemptTimeout = 10 * time.Hour
	if got := seconds(sqsqueue.Attributes(p, "arn")["VisibilityTimeout"]); got != 12*time.Hour {
		t.Errorf("a delivery is invisible for %v, SQS takes at most 12 h", got)
	}
	p = pipeline.DefaultPolicy()
	keep, letters := seconds(live["MessageRetentionPeriod"]), seconds(dead["MessageRetentionPeriod"])
	if letters != 14*24*time.Hour || letters-keep < 7*24*time.Hour {
		t.Errorf("messages stay %v, letters %v since the first sending; want 14 days, a week of them in the dead-letter queue", keep, letters)
	}
	if keep < p.JobDeadline {
		t.Errorf("messages stay %v, less than a job's %v", keep, p.JobDeadline)
	}
	if !strings.Contains(live["RedrivePolicy"], `"maxReceiveCount":"5"`) || p.MaxReceives <= p.MaxAttempts {
		t.Errorf("got redrive policy %s, want more receives than the %d attempts", live["RedrivePolicy"], p.MaxAttempts)
	}
	if _, moves := dead["RedrivePolicy"]; moves {
		t.Error("the dead-letter queue moves letters on: looking at them would lose them")
	}
	name, deadName := sqsqueue.Names("holdfast", pipeline.WorkQueue)
	for _, n := range []string{name, deadName} {
		if strings.HasSuffix(n, ".fifo") {
			t.Errorf("%s is a FIFO queue: one message that fails would hold up those behind it", n)
		}
	}
}
