package api

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
	"holdfast/pkg/view"
)

// format is one form of a report.
type format struct {
	contentType string
	write       func(io.Writer, report.Data) error
}

var formats = map[string]format{
	"html":     {"text/html; charset=utf-8", report.HTML},
	"markdown": {"text/markdown; charset=utf-8", report.Markdown},
	"json":     {"application/json", report.JSON},
	"answers":  {"application/x-ndjson", report.JSONLines},
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
	h := headers(form.contentType)
	h["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Headers: h, Body: body.String()}, nil
}
