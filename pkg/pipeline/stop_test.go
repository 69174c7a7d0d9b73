package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestStopFailure(t *testing.T) {
	late := Job{Status: JobRunning}
	ceiling := Job{Status: JobCancelling, Reason: Fail(Exhausted, "too dear")}
	for _, test := range []struct {
		stop  error
		job   Job
		kind  Kind
		cause string
	}{
		{ErrCancelled, ceiling, Cancelled, "too dear"},
		{ErrCancelled, Job{Status: JobCancelling}, Cancelled, "the job was cancelled"},
		{ErrCancelled, Job{Status: JobPartial}, Cancelled, "the job had ended: partial"},
		{ErrCancelled, late, Cancelled, "the job's deadline was over"},
		{ErrPaused, Job{Status: JobPaused}, Paused, "the job is paused"},
		{ErrDraining, late, Shutdown, "the worker was asked to stop"},
		{context.Canceled, late, Shutdown, "the worker was asked to stop"},
		{ErrClaimLost, late, StoreFault, "the claim was lost: it was not renewed in time, or another exists"},
		{fmt.Errorf("accept: %w", ErrFenced), late, StoreFault, "the claim was lost: it was not renewed in time, or another exists"},
		{ErrTimedOut, late, TimedOut, "the attempt's time was over"},
		{ErrStalled, late, TimedOut, "the attempt made no progress"},
		{ErrTriesUsed, late, Exhausted, "all tries that the task may ever send are used up"},
		{ErrCeiling, late, Cancelled, "the cost ceiling was reached"},
		{errors.New("no route to host"), late, StoreFault, "no route to host"},
	} {
		if got := StopFailure(test.stop, test.job); got.Kind != test.kind || got.Cause != test.cause {
			t.Errorf("%v of a job that is %s: got %s, want %s: %s", test.stop, test.job.Status, got, test.kind, test.cause)
		}
	}
}
