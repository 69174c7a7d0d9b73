// Package api answers the HTTP requests of a deployment: submit, look, steer. API Gateway has asked who the caller is;
// whose jobs those are is worked out here, and nobody is shown, or told of, another's.
//
// It may decide what a request may say and how an answer looks. It may not claim a task, ask a model, or decide what
// becomes of a job: each request is a call of a step.
package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/triage"
	"holdfast/pkg/wiring"
)

// Config is all that an API needs.
type Config struct {
	Backend    *wiring.Backend
	Model      pipeline.ModelInfo // what submitted jobs are asked of
	Policy     pipeline.Policy
	Clock      pipeline.Clock
	Log        *slog.Logger
	TenantFrom config.TenantFrom
	MaxCost    pipeline.Money // ceiling of every job; 0 = each job's worst case
	NewID      func() string  // of uploads: random, and nobody can guess it
}

// API answers requests.
type API struct {
	cfg    Config
	routes map[string]func(*request) (any, error)
}

// New is an API.
func New(cfg Config) *API {
	a := &API{cfg: cfg}
	a.routes = map[string]func(*request) (any, error){
		"POST /uploads":              (*request).upload,
		"POST /jobs":                 (*request).submit,
		"GET /jobs":                  (*request).list,
		"GET /jobs/{job}":            (*request).status,
		"GET /jobs/{job}/watch":      (*request).watch,
		"GET /jobs/{job}/report":     (*request).report,
		"GET /jobs/{job}/why":        (*request).whyJob,
		"GET /jobs/{job}/why/{task}": (*request).whyTask,
		"POST /jobs/{job}/start":     (*request).start,
		"POST /jobs/{job}/pause":     (*request).pause,
		"POST /jobs/{job}/resume":    (*request).resume,
		"POST /jobs/{job}/cancel":    (*request).cancel,
		"POST /jobs/{job}/redrive":   (*request).redrive,
		"GET /dead-letters":          (*request).deadLetters,
	}
	return a
}

// request is one request and who asks.
type request struct {
	*API
	ctx    context.Context
	event  events.APIGatewayV2HTTPRequest
	tenant string
	system *wiring.System
}

// Handle answers one request. Its error is always nil: what goes wrong is an answer too.
func (a *API) Handle(ctx context.Context, e events.APIGatewayV2HTTPRequest) (answer events.APIGatewayV2HTTPResponse, _ error) {
	began := a.cfg.Clock.Mono()
	tenant, err := tenantOf(e, a.cfg.TenantFrom)
	if err == nil {
		bounded, stop := a.inTime(ctx)
		answer, err = a.answer(bounded, e, tenant)
		if err != nil && errors.Is(context.Cause(bounded), errOverdue) {
			err = fmt.Errorf("%w: %w", errOverdue, err)
		}
		stop()
	}
	if err != nil {
		answer = a.problem(ctx, e, err)
	}
	a.cfg.Log.InfoContext(ctx, "request", "route", e.RouteKey, "job", e.PathParameters["job"], "tenant", tenant,
		"status", answer.StatusCode, "ms", (a.cfg.Clock.Mono() - began).Milliseconds())
	return answer, nil
}

func (a *API) answer(ctx context.Context, e events.APIGatewayV2HTTPRequest, tenant string) (answer events.APIGatewayV2HTTPResponse, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	route := a.routes[e.RouteKey]
	if route == nil {
		return answer, refuse(http.StatusNotFound, "there is no %s here; there are: %s", pipeline.Cut(e.RouteKey, 100), routeNames())
	}
	r := &request{API: a, ctx: ctx, event: e, tenant: tenant}
	r.system = wiring.New(a.cfg.Backend, wiring.Config{Tenant: tenant, Worker: "api", Policy: a.cfg.Policy, Clock: a.cfg.Clock, Log: a.cfg.Log})
	said, err := route(r)
	if err != nil {
		return answer, err
	}
	switch said := said.(type) {
	case events.APIGatewayV2HTTPResponse:
		return r.fit(said)
	case withStatus:
		return r.fit(respond(said.status, said.body))
	}
	return r.fit(respond(http.StatusOK, said))
}

// Routes are the keys of the routes that the api knows.
func (a *API) Routes() []string { return slices.Sorted(maps.Keys(a.routes)) }

func routeNames() string {
	var names []string
	for _, r := range config.Routes() {
		names = append(names, r.Key())
	}
	return strings.Join(names, ", ")
}

// withStatus is an answer that is not 200.
type withStatus struct {
	status int
	body   any
}

// refusal is what a caller did wrong, and what to do.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Sprintf(format, args...)}
}

func bad(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }

// problem is the answer to a request that failed. What is not the caller's fault is in the log, not in the answer.
func (a *API) problem(ctx context.Context, e events.APIGatewayV2HTTPRequest, err error) events.APIGatewayV2HTTPResponse {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return respond(refused.status, said{refused.text})
	case errors.Is(err, submit.ErrStands), errors.Is(err, triage.ErrRefused):
		return respond(http.StatusConflict, said{err.Error()})
	case errors.Is(err, pipeline.ErrNotFound):
		return respond(http.StatusNotFound, said{err.Error()})
	case errors.Is(err, errOverdue):
		a.cfg.Log.WarnContext(ctx, "overdue", "route", e.RouteKey, "error", err)
		return respond(http.StatusGatewayTimeout, said{fmt.Sprintf("this takes longer than the %v that a request may. It may have been done all the same: look with GET /jobs before you ask again. The command line takes as long as it needs: holdfast report, why, dead-letters", config.APITimeout)})
	case errors.Is(err, pipeline.ErrBusy), errors.Is(err, pipeline.ErrConflict):
		a.cfg.Log.WarnContext(ctx, "busy", "route", e.RouteKey, "error", err)
		answer := respond(http.StatusServiceUnavailable, said{"the store is busy: ask again in a few seconds"})
		answer.Headers["retry-after"] = "3"
		return answer
	}
	a.cfg.Log.ErrorContext(ctx, "request failed", "route", e.RouteKey, "request", e.RequestContext.RequestID, "error", err)
	return respond(http.StatusInternalServerError, said{fmt.Sprintf("this could not be answered; the reason is in the log under request %s", e.RequestContext.RequestID)})
}

// said is the body of an answer that says something to a person.
type said struct {
	Error string `json:"error"`
}

func respond(status int, body any) events.APIGatewayV2HTTPResponse {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusInternalServerError, Headers: headers("application/json"), Body: `{"error": "the answer could not be encoded"}`}
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: headers("application/json"), Body: text.String()}
}

func headers(contentType string) map[string]string {
	return map[string]string{
		"content-type": contentType, "cache-control": "private, no-store", "x-content-type-options": "nosniff",
	}
}

// decode reads a body of JSON strictly: a field that nobody knows is a mistake of the caller's.
func (r *request) decode(into any) error {
	body := []byte(r.event.Body)
	if r.event.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.event.Body); err != nil {
			return bad("the body is no base64: %v", err)
		}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return bad("the body cannot be used: %s; send one JSON object", strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return bad("there is something after the JSON object in the body; send one")
	}
	return nil
}
