package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"go.uber.org/goleak"

	"holdfast/pkg/api"
	"holdfast/pkg/config"
	"holdfast/pkg/ingest"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is an api over a backend in memory, and a worker that may be started.
type desk struct {
	*testing.T
	ctx   context.Context
	clock pipeline.RealClock
	back  *wiring.Backend
	model *offline.Model
	cfg   api.Config
	used  map[string]bool // the store's operations that the api made
	fails func(op string) error
	slow  time.Duration // of each of the store's operations
	log   strings.Builder
}

func in(t *testing.T, name string, test func(d *desk)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d := &desk{T: t, ctx: ctx, clock: pipeline.NewRealClock(), used: map[string]bool{}}
			policy := pipeline.DefaultPolicy()
			price, err := config.Price(config.PriceAs)
			d.must(err)
			d.model = offline.New(offline.Config{Clock: d.clock, Price: price, PricedAs: config.PriceAs})
			d.back = wiring.InMemory(policy, d.clock)
			seen := *d.back
			seen.Store = pipelinetest.Wrap(d.back.Store, func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
				d.used[op.Name] = true
				if d.fails != nil {
					if err := d.fails(op.Name); err != nil {
						return err
					}
				}
				if err := d.clock.Sleep(ctx, d.slow); d.slow > 0 && err != nil {
					return err
				}
				return do(ctx)
			})
			seen.Shared = addresses{}
			ids := 0
			d.cfg = api.Config{
				Backend: &seen, Model: d.model.Info(), Policy: policy, Clock: d.clock, TenantFrom: config.TenantFrom{Kind: config.TenantAccount},
				Log: slog.New(slog.NewTextHandler(&d.log, nil)),
				NewID: func() string {
					ids++
					return fmt.Sprintf("id-%d", ids)
				},
			}
			test(d)
		})
	})
}

// addresses are those of no bucket.
type addresses struct{}

func (addresses) PutURL(_ context.Context, key string, size int64, _ time.Duration) (string, map[string]string, error) {
	return "https://blobs/" + key, map[string]string{"Content-Length": fmt.Sprint(size)}, nil
}

func (addresses) GetURL(_ context.Context, key, contentType string, _ time.Duration) (string, error) {
	return "https://blobs/" + key + "?as=" + contentType, nil
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// works lets a worker work until the job has ended.
func (d *desk) works(id pipeline.JobID) pipeline.Job {
	d.Helper()
	s := wiring.New(d.back, wiring.Config{
		Worker: "worker", Policy: d.cfg.Policy, Clock: d.clock, Model: d.model, Read: ingest.New(ingest.Config{Clock: d.clock}).Read,
		Jitter: func() float64 { return 0.5 },
	})
	drain, stop := context.WithCancel(d.ctx)
	var group pipeline.Group
	group.Go(func() { s.Worker().Run(d.ctx, drain) })
	group.Go(func() { s.Reaper.Run(drain, time.Second) })
	defer group.Wait()
	defer stop()
	for range 600 {
		job, err := d.back.Store.Job(d.ctx, id)
		d.must(err)
		if job.Status.Ended() {
			return job
		}
		time.Sleep(time.Second)
	}
	d.Error("the job does not end")
	return pipeline.Job{}
}

// edit changes a request.
type edit func(*events.APIGatewayV2HTTPRequest)

func query(pairs ...string) edit {
	return func(e *events.APIGatewayV2HTTPRequest) {
		e.QueryStringParameters = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			e.QueryStringParameters[pairs[i]] = pairs[i+1]
		}
	}
}

func account(id string) edit {
	return func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{AccountID: id, UserARN: "arn:aws:sts::" + id + ":assumed-role/Reviewer/anna"},
		}
	}
}

func token(claims map[string]string) edit {
	return func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims}}
	}
}

func anonymous(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer = nil }

// ask makes a request as API Gateway hands it over, and reads the answer into into, unless that is nil. path is as in
// "GET /jobs/7/why": the parts that the route has in braces are found.
func (d *desk) ask(line string, body any, into any, edits ...edit) events.APIGatewayV2HTTPResponse {
	d.Helper()
	e := events.APIGatewayV2HTTPRequest{RouteKey: "GET /nowhere", PathParameters: map[string]string{}}
	for _, route := range config.Routes() {
		if parameters, is := match(route.Key(), line); is {
			e.RouteKey, e.PathParameters = route.Key(), parameters
		}
	}
	account("123456789012")(&e)
	switch body := body.(type) {
	case nil:
	case string:
		e.Body = body
	default:
		e.Body = string(pipeline.Encode(body))
	}
	for _, edit := range edits {
		edit(&e)
	}
	raw, err := json.Marshal(e)
	d.must(err)
	ctx, stop := d.clock.WithTimeout(d.ctx, config.APITimeout, pipeline.ErrTimedOut)
	defer stop()
	began := d.clock.Mono()
	out, err := lambda.NewHandler(api.New(d.cfg).Handle).Invoke(ctx, raw)
	d.must(err)
	if took := d.clock.Mono() - began; took >= config.APITimeout {
		d.Errorf("%s took %v", line, took)
	}
	var answer events.APIGatewayV2HTTPResponse
	d.must(json.Unmarshal(out, &answer))
	if into != nil {
		if err := json.Unmarshal([]byte(answer.Body), into); err != nil {
			d.Errorf("%s: %d %s: %v", line, answer.StatusCode, answer.Body, err)
		}
	}
	return answer
}

func match(route, line string) (map[string]string, bool) {
	want, got := strings.Split(route, "/"), strings.Split(line, "/")
	if len(want) != len(got) {
		return nil, false
	}
	parameters := map[string]string{}
	for i := range want {
		if name, is := strings.CutPrefix(want[i], "{"); is {
			parameters[strings.TrimSuffix(name, "}")] = got[i]
		} else if want[i] != got[i] {
			return nil, false
		}
	}
	return parameters, true
}

// refused checks that a request is refused with this status, and a sentence that says this.
func (d *desk) refused(status int, says, line string, body any, edits ...edit) {
	d.Helper()
	var said struct{ Error string }
	answer := d.ask(line, body, &said, edits...)
	if answer.StatusCode != status || !strings.Contains(said.Error, says) {
		d.Errorf("%s %v: got %d %q, want %d that says %q", line, body, answer.StatusCode, said.Error, status, says)
	}
}

type answered struct {
	Job   pipeline.Job
	Stood bool
}

var contract = strings.Repeat("1. Liability. The liability of the Supplier under this Agreement is unlimited. Either party may end it at any time.\n\n", 12)

func (d *desk) submitted(edits ...edit) pipeline.Job {
	d.Helper()
	var got answered
	answer := d.ask("POST /jobs", map[string]any{"name": "contract.txt", "text": contract, "profile": "compact"}, &got, edits...)
	if answer.StatusCode != http.StatusAccepted || got.Job.ID == "" {
		d.Fatalf("got %d %s", answer.StatusCode, answer.Body)
	}
	return got.Job
}
