package config

import (
	"time"

	"holdfast/pkg/pipeline"
)

// FunctionName is a process's name in a deployment.
func FunctionName(stack string, p Process) string { return stack + "-" + string(p) }

// Route is one request that the api answers.
type Route struct {
	Method string
	Path   string // parts in braces are the caller's
	Does   string
}

// Key is the route as API Gateway names it.
func (r Route) Key() string { return r.Method + " " + r.Path }

// Routes are all requests that the api answers: the stack makes these, and the function knows no other.
func Routes() []Route {
	return []Route{
		{"POST", "/uploads", "an address to which a document may be put"},
		{"POST", "/jobs", "submit a document, in the request or uploaded"},
		{"GET", "/jobs", "list jobs, newest first"},
		{"GET", "/jobs/{job}", "where a job stands"},
		{"GET", "/jobs/{job}/watch", "the same, once it has changed or the wait is over, with the findings since a cursor"},
		{"GET", "/jobs/{job}/report", "the report of a job that has ended: html, markdown, json or answers"},
		{"GET", "/jobs/{job}/why", "what is missing from a job and why"},
		{"GET", "/jobs/{job}/why/{task}", "every attempt and every try of a task"},
		{"POST", "/jobs/{job}/start", "let a planned job run"},
		{"POST", "/jobs/{job}/pause", "pause a job"},
		{"POST", "/jobs/{job}/resume", "let a paused job go on"},
		{"POST", "/jobs/{job}/cancel", "cancel a job"},
		{"POST", "/jobs/{job}/redrive", "give tasks that ended with cells missing their attempts back"},
		{"GET", "/dead-letters", "the tenant's dead letters, and what each means"},
	}
}

// Blobs that are on their way begin so: documents that were put and are not submitted yet, and answers that are too
// large to be sent. Nobody needs them for longer than their addresses are valid; the bucket deletes them by the day.
const (
	UploadPrefix = "upload/"
	AnswerPrefix = "answer/"
)

// Times of the processes that are not about retrying: how long one event or request may take.
const (
	ReapTimeout = 55 * time.Second // it comes every ReapEvery: two sweeps at once would be waste
	ReapEvery   = time.Minute
	APITimeout  = 29 * time.Second // API Gateway gives up after 30 s
)

// Timeout is how long one event of a function may take; 0 for a process that has no events.
func Timeout(process Process, p pipeline.Policy) time.Duration {
	switch process {
	case Control, Work:
		return p.FunctionTimeout()
	case Reap:
		return ReapTimeout
	case API:
		return APITimeout
	}
	return 0
}

// Batch is how many messages one event of a queue's function brings at most: chunks come one by one, since a function
// has its calls in flight for one; splits and finalizes are short.
func Batch(p Process) int {
	switch p {
	case Control:
		return 5
	case Work:
		return 1
	}
	return 0
}
