package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
)

// Bounds of a list.
const (
	listLimit = 50
	mostLimit = 100
	maxCursor = 200 // bytes
)

// jobs is a page of a tenant's jobs.
type jobs struct {
	Tenant string         `json:"tenant"` // whom the caller is taken for
	Jobs   []pipeline.Job `json:"jobs"`
	Next   string         `json:"next,omitempty"` // the cursor of the next page; none on the last
}

// list answers GET /jobs.
func (r *request) list() (any, error) {
	limit, err := r.number("limit", listLimit, 1, mostLimit)
	if err != nil {
		return nil, err
	}
	cursor := r.event.QueryStringParameters["cursor"]
	if len(cursor) > maxCursor || strings.ContainsFunc(cursor, unprintable) {
		return nil, bad("cursor is the next of the last answer: got %q", pipeline.Cut(cursor, 40))
	}
	found, next, err := r.cfg.Backend.Store.Jobs(r.ctx, r.tenant, cursor, limit)
	if err != nil {
		return nil, err
	}
	return jobs{r.tenant, append([]pipeline.Job{}, found...), next}, nil
}

// number is a number in the query.
func (r *request) number(name string, without, least, most int) (int, error) {
	text, has := r.event.QueryStringParameters[name]
	if !has {
		return without, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, bad("%s is a whole number from %d to %d: got %q", name, least, most, pipeline.Cut(text, 40))
	}
	return n, nil
}

// job is the job that the request names, if it is the caller's. Another tenant's is not there.
func (r *request) job() (pipeline.Job, error) {
	id := pipeline.JobID(r.event.PathParameters["job"])
	unknown := refuse(http.StatusNotFound, "tenant %s has no job %q; list its jobs with GET /jobs", r.tenant, pipeline.Cut(string(id), 60))
	if id == "" || len(id) > 100 {
		return pipeline.Job{}, unknown
	}
	job, err := r.cfg.Backend.Store.Job(r.ctx, id)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return pipeline.Job{}, unknown
	case err != nil:
		return pipeline.Job{}, err
	case job.Tenant != r.tenant:
		return pipeline.Job{}, unknown
	}
	return job, nil
}

// status answers GET /jobs/{job}.
func (r *request) status() (any, error) {
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	return view.StandingOf(r.ctx, r.system, job)
}

// steer answers what changes a job's status.
func (r *request) steer(do func(ctx context.Context, id pipeline.JobID) (pipeline.Job, error)) (any, error) {
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	if err := r.decode(&struct{}{}); err != nil {
		return nil, err
	}
	job, err = do(r.ctx, job.ID)
	if err != nil {
		return nil, err
	}
	return map[string]pipeline.Job{"job": job}, nil
}

func (r *request) start() (any, error)  { return r.steer(r.system.Submitter.Start) }
func (r *request) pause() (any, error)  { return r.steer(r.system.Submitter.Pause) }
func (r *request) resume() (any, error) { return r.steer(r.system.Submitter.Resume) }

// maxReason is the longest reason of a cancel, in bytes.
const maxReason = 200

// cancel answers POST /jobs/{job}/cancel.
func (r *request) cancel() (any, error) {
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	var why struct {
		Reason string `json:"reason"`
	}
	if err := r.decode(&why); err != nil {
		return nil, err
	}
	switch {
	case len(why.Reason) > maxReason:
		return nil, bad("reason has %d bytes, and at most %d are kept", len(why.Reason), maxReason)
	case strings.ContainsFunc(why.Reason, unprintable):
		return nil, bad("reason is one line that can be printed: got %q", pipeline.Cut(why.Reason, 60))
	}
	job, err = r.system.Submitter.Cancel(r.ctx, job.ID, why.Reason)
	if err != nil {
		return nil, err
	}
	return map[string]pipeline.Job{"job": job}, nil
}
