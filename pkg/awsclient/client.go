// Package awsclient makes the clients of the AWS SDK that the AWS adapters work with: credentials, endpoint, retries,
// time-outs and connections are decided here and nowhere else.
//
// It may decide how often a request is sent and how long it may take. It may not make a request of its own, but for
// credentials.
package awsclient

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"
)

// How often one request is sent and how long each sending may take. A renewal must be through, or known to be busy,
// well before its claim expires: the sendings of a store request and their waits take less than a claim's time to live.
const (
	storeTries   = 4
	storeTimeout = 3 * time.Second
	storeBackoff = 500 * time.Millisecond // the longest wait between two sendings
	queueTries   = 3
	queueTimeout = 5 * time.Second
	pollTimeout  = 30 * time.Second // a long poll takes up to 20 s by itself
	blobTries    = 3
	blobTimeout  = 60 * time.Second
)

// Settings say where AWS is.
type Settings struct {
	Endpoint string        // "" is AWS itself; else one address for all services: LocalStack
	DynamoDB string        // "" is Endpoint; else an address of the store's own
	Region   string        // "" is what the environment or the profile says
	Inflight int           // requests at once that keep their connections; 0 = 64
	Backoff  time.Duration // the longest wait between two sendings; 0 = half a second
	// Transport, if set, stands between the clients and the network: it records, delays or breaks.
	Transport func(http.RoundTripper) http.RoundTripper
}

// Clients makes clients that share credentials and connections.
type Clients struct {
	cfg      aws.Config
	settings Settings
	base     *http.Transport   // the connections
	pool     http.RoundTripper // what stands before them
	watch    *watch            // over the store's answers
}

// New reads the usual chain of credentials, and fails here where it has none: an adapter would take that for a service
// which does not answer. An endpoint on this machine needs none.
func New(ctx context.Context, s Settings) (*Clients, error) {
	if s.Inflight <= 0 {
		s.Inflight = 64
	}
	if s.Backoff <= 0 {
		s.Backoff = storeBackoff
	}
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // what matters comes as an error
	if s.Region != "" {
		options = append(options, config.WithRegion(s.Region))
	}
	if s.Endpoint != "" {
		local, err := isLocal(s.Endpoint)
		if err != nil {
			return nil, err
		}
		if local && os.Getenv("AWS_ACCESS_KEY_ID") == "" {
			options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		if s.Endpoint == "" {
			return nil, fmt.Errorf("no AWS region is set: set AWS_REGION, or a profile that names one")
		}
		cfg.Region = "us-east-1"
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role (%w)", err)
	}
	c := &Clients{cfg: cfg, settings: s, base: newTransport(s.Inflight)}
	c.pool = c.base
	if s.Transport != nil {
		c.pool = s.Transport(c.base)
	}
	c.watch = &watch{inner: c.pool, now: time.Now}
	return c, nil
}

func isLocal(endpoint string) (bool, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return false, fmt.Errorf("the endpoint %q is no address; write e.g. http://127.0.0.1:4566", endpoint)
	}
	switch u.Hostname() {
	case "127.0.0.1", "localhost", "::1":
		return true, nil
	}
	return false, nil
}

// newTransport keeps as many connections open as there are requests at once: opening one costs more than most requests.
func newTransport(inflight int) *http.Transport {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = 2 * inflight
		t.MaxIdleConnsPerHost = inflight
	}).GetTransport()
}

func (c *Clients) http(timeout time.Duration) *http.Client {
	return &http.Client{Transport: c.pool, Timeout: timeout}
}

// queueHTTP gives a long poll its time. Whatever else is asked of a queue that does not answer is known to have failed
// soon: the commands ask it first.
type queueHTTP struct{ poll, other *http.Client }

// Do makes the request.
func (q queueHTTP) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ReceiveMessage") {
		return q.poll.Do(r)
	}
	return q.other.Do(r)
}

// Close closes the connections that nobody uses.
func (c *Clients) Close() {
	c.base.CloseIdleConnections()
}

// address is the first of the addresses that is set; nil is AWS itself.
func address(all ...string) *string {
	for _, url := range all {
		if url != "" {
			return aws.String(url)
		}
	}
	return nil
}

// retryer sends a request at most tries times: after what the SDK takes for passing, and after these codes.
func (c *Clients) retryer(tries int, codes ...string) aws.Retryer {
	standard := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = tries
		o.MaxBackoff = c.settings.Backoff
		o.RateLimiter = noTokens{} // the number of tries is the bound; a bucket shared by all requests would be a second one
	})
	if len(codes) == 0 {
		return standard
	}
	return retry.AddWithErrorCodes(standard, codes...)
}

type noTokens struct{}

func (noTokens) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}

func (noTokens) AddTokens(uint) error { return nil }

// DynamoDB is a client for the store.
func (c *Clients) DynamoDB() *dynamodb.Client {
	return dynamodb.NewFromConfig(c.cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint = address(c.settings.DynamoDB, c.settings.Endpoint)
		o.Retryer = c.retryer(storeTries, "TransactionConflictException") // which is no refusal
		o.HTTPClient = &http.Client{Transport: c.watch, Timeout: storeTimeout}
	})
}

// SQS is a client for the queues.
func (c *Clients) SQS() *sqs.Client {
	return sqs.NewFromConfig(c.cfg, func(o *sqs.Options) {
		o.BaseEndpoint = address(c.settings.Endpoint)
		o.Retryer = c.retryer(queueTries)
		o.HTTPClient = queueHTTP{poll: c.http(pollTimeout), other: c.http(queueTimeout)}
	})
}

// S3 is a client for the blobs.
func (c *Clients) S3() *s3.Client {
	return s3.NewFromConfig(c.cfg, func(o *s3.Options) {
		o.BaseEndpoint = address(c.settings.Endpoint)
		o.UsePathStyle = c.settings.Endpoint != ""
		o.Retryer = c.retryer(blobTries)
		o.HTTPClient = c.http(blobTimeout)
	})
}

// Region is where the clients look.
func (c *Clients) Region() string { return c.cfg.Region }
