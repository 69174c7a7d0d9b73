package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

type gets struct{}

func (gets) PutURL(context.Context, string, int64, time.Duration) (string, map[string]string, error) {
	return "", nil, errors.New("not asked for")
}

func (gets) GetURL(_ context.Context, key string, _ time.Duration) (string, error) {
	return "https://blobs/" + key, nil
}

func TestAReportThatIsTooLargeForAnAnswerIsPutWhereItCanBeGot(t *testing.T) {
	blobs := memory.New()
	r := &request{ctx: t.Context(), API: &API{cfg: Config{Backend: &wiring.Backend{Blobs: blobs, Shared: gets{}}}}}
	job := pipeline.Job{ID: "0123456789-1", Epoch: 2}
	large := bytes.Repeat([]byte("<p>"), 2<<20)
	said, err := r.deliver(job, formats["html"], large)
	answer, is := said.(events.APIGatewayV2HTTPResponse)
	if err != nil || !is || answer.StatusCode != http.StatusSeeOther || answer.Headers["location"] != "https://blobs/report/0123456789-1/0002.html" {
		t.Fatalf("got %v, %v", said, err)
	}
	if stored, err := blobs.Blob(t.Context(), "report/0123456789-1/0002.html"); err != nil || !bytes.Equal(stored, large) {
		t.Errorf("got %d bytes, %v", len(stored), err)
	}
	r.cfg.Backend.Shared = nil
	var refused refusal
	if _, err := r.deliver(job, formats["html"], large); !errors.As(err, &refused) || !strings.Contains(refused.text, "holdfast report 0123456789-1") {
		t.Errorf("got %v, want what to do instead", err)
	}
}
