package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// Bounds of an answer.
const (
	// largestAnswer is the most that is sent, in bytes of JSON: Lambda takes 6 MB, its envelope included.
	largestAnswer = 5 << 20
	// escaped is how many times as long a text may become in JSON.
	escaped = 6
	// answerFor is how long the address of an answer is valid that is too large to be sent.
	answerFor = 5 * time.Minute
	// answerMargin is what is left of a request's time when its work is dropped: for the answer that says so.
	answerMargin = 3 * time.Second
)

// errOverdue says that there is no more time to answer.
var errOverdue = errors.New("the request's time is over")

// inTime is a context that ends while there is still time for an answer that says so. Without it the gateway would say
// that something is wrong, and nobody what.
func (a *API) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, has := ctx.Deadline()
	if !has {
		return ctx, func() {}
	}
	return a.cfg.Clock.WithTimeout(ctx, pipeline.At(deadline).Sub(a.cfg.Clock.Now())-answerMargin, errOverdue)
}

// fit is the answer, or, where it is too large to be sent, where it is: its body is put under a name that nobody can
// guess, and the address of that is valid for a while.
func (r *request) fit(answer events.APIGatewayV2HTTPResponse) (events.APIGatewayV2HTTPResponse, error) {
	if len(answer.Body) <= largestAnswer/escaped {
		return answer, nil
	}
	sent, err := json.Marshal(answer.Body) // as Lambda's runtime does
	if err != nil || len(sent) <= largestAnswer {
		return answer, err
	}
	if r.cfg.Backend.Shared == nil {
		return answer, refuse(http.StatusRequestEntityTooLarge, "the answer has %d bytes, which is too many to send: ask with the command line (holdfast report, why, status, dead-letters)", len(answer.Body))
	}
	key := config.AnswerPrefix + r.tenantKey() + "/" + r.cfg.NewID()
	if err := r.cfg.Backend.Blobs.PutBlob(r.ctx, key, []byte(answer.Body)); err != nil {
		return answer, err
	}
	url, err := r.cfg.Backend.Shared.GetURL(r.ctx, key, answer.Headers["content-type"], answerFor)
	if err != nil {
		return answer, err
	}
	elsewhere := respond(http.StatusSeeOther, map[string]string{"url": url})
	elsewhere.Headers["location"] = url
	return elsewhere, nil
}
