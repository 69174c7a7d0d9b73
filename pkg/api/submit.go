package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode"

	"holdfast/pkg/config"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
	"holdfast/pkg/submit"
)

// Bounds of a document.
const (
	MaxDocument = 64 << 20 // as much as is read of any, in bytes
	maxInline   = 4 << 20  // of a text in the request
	uploadFor   = 15 * time.Minute
	maxName     = 200 // bytes of a document's name
	maxUpload   = 64  // bytes of an upload's
)

// shippedPipeline is followed unless another is named.
const shippedPipeline = "contract-review"

// uploadWanted asks for an address.
type uploadWanted struct {
	Bytes int64 `json:"bytes"` // of the document, exactly
}

// uploadOffered is where a document may be put.
type uploadOffered struct {
	Upload  string            `json:"upload"` // what to name in the submission
	URL     string            `json:"url"`    // for an HTTP PUT of the body
	Headers map[string]string `json:"headers"`
	Expires pipeline.Instant  `json:"expires"`
}

// upload answers POST /uploads.
func (r *request) upload() (any, error) {
	var wanted uploadWanted
	if err := r.decode(&wanted); err != nil {
		return nil, err
	}
	switch {
	case r.cfg.Backend.Shared == nil:
		return nil, refuse(http.StatusNotImplemented, "this deployment takes no uploads: send the text in the submission")
	case wanted.Bytes < 1 || wanted.Bytes > MaxDocument:
		return nil, bad("bytes is the size of the document, from 1 to %d: got %d", MaxDocument, wanted.Bytes)
	}
	id := r.cfg.NewID()
	url, headers, err := r.cfg.Backend.Shared.PutURL(r.ctx, r.uploadKey(id), wanted.Bytes, uploadFor)
	if err != nil {
		return nil, err
	}
	return withStatus{http.StatusCreated, uploadOffered{id, url, headers, r.cfg.Clock.Now().Add(uploadFor)}}, nil
}

// uploadKey is the blob key of an upload. The tenant is part of it, so nobody can submit another's.
func (r *request) uploadKey(id string) string {
	return config.UploadPrefix + r.tenantKey() + "/" + id
}

// submission is a document and how it shall be worked on.
type submission struct {
	Name     string  `json:"name"`
	Text     string  `json:"text"`   // of the document, or
	Upload   string  `json:"upload"` // what POST /uploads called it
	Pipeline string  `json:"pipeline"`
	Profile  string  `json:"profile"`
	MaxCost  float64 `json:"max_cost"` // dollars; 0 = the worst case
	Hold     bool    `json:"hold"`     // only split and priced, until it is started
	Fresh    bool    `json:"fresh"`    // a new run that uses no stored replies
}

// submitted is a job that was submitted.
type submitted struct {
	Job   pipeline.Job `json:"job"`
	Stood bool         `json:"stood"` // the same submission was there already
}

// submit answers POST /jobs.
func (r *request) submit() (any, error) {
	var s submission
	if err := r.decode(&s); err != nil {
		return nil, err
	}
	sub, err := r.submission(s)
	if err != nil {
		return nil, err
	}
	job, stood, err := r.system.Submitter.Submit(r.ctx, sub)
	if err != nil {
		return nil, err
	}
	return withStatus{http.StatusAccepted, submitted{job, stood}}, nil
}

func (r *request) submission(s submission) (submit.Submission, error) {
	none := submit.Submission{}
	if strings.TrimSpace(s.Name) == "" || len(s.Name) > maxName || strings.ContainsAny(s.Name, `/\`) || strings.ContainsFunc(s.Name, unprintable) {
		return none, bad("name is the document's, for people: 1 to %d bytes that can be printed, without slashes", maxName)
	}
	if s.Pipeline == "" {
		s.Pipeline = shippedPipeline
	}
	definition, err := pipelines.Load(s.Pipeline, s.Profile) // by name alone: no request reads a file of this machine
	if err != nil {
		return none, bad("%v", err)
	}
	if err := definition.CheckModel(r.cfg.Model); err != nil {
		return none, bad("%v", err)
	}
	ceiling, err := r.ceiling(s.MaxCost)
	if err != nil {
		return none, err
	}
	source, err := r.source(s)
	if err != nil {
		return none, err
	}
	model := r.cfg.Model
	if model.Name == offline.Name {
		model.Placeholders = offline.Placeholders(definition)
	}
	return submit.Submission{
		Name: s.Name, Source: source, Definition: definition, Model: model, MaxCost: ceiling, Hold: s.Hold, Fresh: s.Fresh,
	}, nil
}

// ceiling is what was asked for, and no more than the deployment allows.
func (r *request) ceiling(dollars float64) (pipeline.Money, error) {
	const most = 1e9 // what an amount in our unit can hold
	if !(dollars >= 0 && dollars <= most) || math.IsInf(dollars, 0) {
		return 0, bad("max_cost is an amount of dollars, e.g. 2.50")
	}
	wanted := pipeline.Money(dollars * float64(pipeline.Dollar))
	switch {
	case wanted == 0 && dollars > 0: // 0 is no ceiling at all
		return 0, bad("max_cost is less than can be counted: the least is $%.9f", 1/float64(pipeline.Dollar))
	case r.cfg.MaxCost == 0:
		return wanted, nil
	case wanted > r.cfg.MaxCost:
		return 0, bad("max_cost is %s, and this deployment allows a job %s at most", wanted, r.cfg.MaxCost)
	case wanted == 0:
		return r.cfg.MaxCost, nil
	}
	return wanted, nil
}

// unprintable says that a character does more to a screen than to be seen there: it ends the line, moves the cursor or
// turns the direction of what stands beside it.
func unprintable(c rune) bool {
	return unicode.IsControl(c) || unicode.In(c, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// notInUpload says that a character is in no name of an upload: nothing else becomes part of a blob's key.
func notInUpload(c rune) bool {
	return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z')
}

func (r *request) source(s submission) ([]byte, error) {
	switch {
	case (s.Text == "") == (s.Upload == ""):
		return nil, bad("send the document either as text, or as the upload that POST /uploads named")
	case len(s.Text) > maxInline:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the text has %d bytes, and %d is the limit in a request: put it where POST /uploads says", len(s.Text), maxInline)
	case s.Text != "":
		return []byte(s.Text), nil
	case len(s.Upload) > maxUpload || strings.ContainsFunc(s.Upload, notInUpload):
		return nil, bad("upload is what POST /uploads called it")
	}
	source, err := r.cfg.Backend.Blobs.Blob(r.ctx, r.uploadKey(s.Upload))
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return nil, bad("nothing was put under the upload %s, or it is gone: ask for another with POST /uploads and put the document there", pipeline.Cut(s.Upload, 60))
	case err != nil:
		return nil, fmt.Errorf("read the upload: %w", err)
	case len(source) > MaxDocument:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the document has %d bytes, and %d is the limit: split it into several", len(source), MaxDocument)
	}
	return source, nil
}
