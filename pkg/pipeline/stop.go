package pipeline

import (
	"context"
	"errors"
)

// StopFailure is the failure that an error of an Attempt's method stands for, or the cause of its context: what stopped
// it is told by the error and, for a cancel or a pause, by the job. Every other error is the store's.
func StopFailure(stop error, job Job) Failure {
	switch {
	case errors.Is(stop, ErrCancelled):
		return cancelFailure(job)
	case errors.Is(stop, ErrPaused):
		return Fail(Paused, "the job is %s", job.Status)
	case errors.Is(stop, ErrDraining), errors.Is(stop, context.Canceled):
		return Fail(Shutdown, "the worker was asked to stop")
	case errors.Is(stop, ErrClaimLost), errors.Is(stop, ErrFenced):
		return Fail(StoreFault, "the claim was lost: it was not renewed in time, or another exists")
	case errors.Is(stop, ErrTimedOut):
		return Fail(TimedOut, "the attempt's time was over")
	case errors.Is(stop, ErrStalled):
		return Fail(TimedOut, "the attempt made no progress")
	case errors.Is(stop, ErrTriesUsed):
		return Fail(Exhausted, "%v", stop)
	case errors.Is(stop, ErrOverspent):
		return Fail(Cancelled, "%v", stop)
	case errors.Is(stop, ErrCeiling):
		return Fail(Cancelled, "the cost ceiling was reached")
	}
	return Fail(StoreFault, "%v", stop)
}

func cancelFailure(job Job) Failure {
	switch {
	case !job.Reason.None() && job.Status == JobCancelling:
		f := job.Reason
		f.Kind = Cancelled // whatever made somebody cancel it
		return f
	case job.Status.Ended():
		return Fail(Cancelled, "the job had ended: %s", job.Status)
	case job.Status == JobCancelling:
		return Fail(Cancelled, "the job was cancelled")
	}
	return Fail(Cancelled, "the job's deadline was over")
}
