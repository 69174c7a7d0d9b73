package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

func failed(kind pipeline.Kind, code, cause string, err error) *pipeline.ModelError {
	f := pipeline.Fail(kind, "%s", cause)
	f.Code = code
	if err != nil {
		f.Detail = pipeline.Cut(err.Error(), pipeline.MaxDetail)
	}
	return &pipeline.ModelError{Failure: f, Err: err}
}

// billed is a try that was paid for and brought nothing.
func billed(r pipeline.Request, cause string, err error) *pipeline.ModelError {
	e := failed(pipeline.Ambiguous, "", cause, err)
	e.Usage = pipeline.Usage{Input: r.InputTokens()}
	return e
}

// unanswered is a request without an answer: not billed if it never left, for want of a connection; perhaps billed
// otherwise.
func unanswered(ctx context.Context, left bool, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !left {
		return failed(pipeline.Unavailable, "", "nobody answers at the model's address", err)
	}
	return failed(pipeline.Ambiguous, "", "the model did not answer; the call may have been billed", err)
}

// cut is an answer that ended before its end.
func cut(ctx context.Context, r pipeline.Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return billed(r, "the answer was cut off; the call may have been billed", err)
}

type refusal struct {
	Error struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"` // a text, or a number
	} `json:"error"`
}

// refused is an answer that says no.
func refused(resp *http.Response, body []byte) *pipeline.ModelError {
	var r refusal
	_ = json.Unmarshal(body, &r) // a body that is none has no code
	code, _ := r.Error.Code.(string)
	if code == "" {
		code = r.Error.Type
	}
	kind, cause := kindOf(resp.StatusCode, code, strings.ToLower(r.Error.Message))
	f := pipeline.Fail(kind, "%s", cause)
	f.Code = code
	f.Detail = pipeline.Cut(strconv.Itoa(resp.StatusCode)+": "+string(body), pipeline.MaxDetail)
	return &pipeline.ModelError{Failure: f, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()), Err: errors.New(f.Detail)}
}

func kindOf(status int, code, text string) (pipeline.Kind, string) {
	switch {
	case code == "insufficient_quota":
		return pipeline.Quota, "the quota or the balance of this model is used up"
	case status == http.StatusTooManyRequests:
		return pipeline.Throttled, "the model asks to slow down"
	case code == "context_length_exceeded", status == http.StatusRequestEntityTooLarge, status == http.StatusBadRequest && strings.Contains(text, "context length"):
		return pipeline.TooLong, "the request is longer than the model's context"
	case code == "content_filter", code == "content_policy_violation":
		return pipeline.Refused, "the model refused to answer"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return pipeline.Rejected, "these credentials may not use this model"
	case status == http.StatusNotFound:
		return pipeline.Rejected, "there is no such model at this address"
	case status == http.StatusRequestTimeout, status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		return pipeline.Ambiguous, "the model did not answer in time; the call may have been billed"
	case status >= http.StatusInternalServerError:
		return pipeline.Unavailable, "the model's service is not available"
	}
	return pipeline.Invalid, "the model does not accept this request"
}

// retryAfter reads seconds or a date; 0 is nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
