package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
	"holdfast/pkg/view"
)

// largestAnswer is the most that a function may answer with, as JSON, less a little.
const largestAnswer = 5 << 20

// reportFor is how long the address of a report is valid that is too large for an answer.
const reportFor = 5 * time.Minute

// format is one form of a report.
type format struct {
	contentType, ending string
	write               func(io.Writer, report.Data) error
}

var formats = map[string]format{
	"html":     {"text/html; charset=utf-8", "html", report.HTML},
	"markdown": {"text/markdown; charset=utf-8", "md", report.Markdown},
	"json":     {"application/json", "json", report.JSON},
	"answers":  {"application/x-ndjson", "jsonl", report.JSONLines},
}

// report answers GET /jobs/{job}/report.
func (r *request) report() (any, error) {
	name := r.event.QueryStringParameters["format"]
	if name == "" {
		name = "html"
	}
	form, known := formats[name]
	if !known {
		return nil, bad("there is no format %q; the formats are %s", pipeline.Cut(name, 40), strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	switch {
	case !job.Status.Ended():
		return nil, refuse(http.StatusConflict, "the job is %s; its report is made when it has ended: GET /jobs/%s/watch", job.Status, job.ID)
	case job.Result == "":
		return nil, refuse(http.StatusConflict, "the job is %s and has no result: GET /jobs/%s/why", job.Status, job.ID)
	}
	result, err := view.Result(r.ctx, r.system, job)
	if err != nil {
		return nil, err
	}
	data, err := view.Report(r.ctx, r.system, result)
	if err != nil {
		return nil, err
	}
	data.Redrive = fmt.Sprintf("POST /jobs/%s/redrive", job.ID)
	var body bytes.Buffer
	if err := form.write(&body, data); err != nil {
		return nil, fmt.Errorf("write the report of job %s: %w", job.ID, err)
	}
	return r.deliver(job, form, body.Bytes())
}

// deliver answers with the body, or, where it is too large for an answer, with where it is.
func (r *request) deliver(job pipeline.Job, form format, body []byte) (any, error) {
	if size, err := json.Marshal(string(body)); err == nil && len(size) <= largestAnswer {
		h := headers(form.contentType)
		h["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Headers: h, Body: string(body)}, nil
	}
	if r.cfg.Backend.Shared == nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the report has %d bytes, which is too large for an answer: write it with holdfast report %s", len(body), job.ID)
	}
	key := fmt.Sprintf("report/%s/%04d.%s", job.ID, job.Epoch, form.ending)
	if err := r.cfg.Backend.Blobs.PutBlob(r.ctx, key, body); err != nil {
		return nil, err
	}
	url, err := r.cfg.Backend.Shared.GetURL(r.ctx, key, reportFor)
	if err != nil {
		return nil, err
	}
	answer := respond(http.StatusSeeOther, map[string]string{"url": url})
	answer.Headers["location"] = url
	return answer, nil
}
