package awsclient

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// answers is a network on which everything answers the same.
type answers struct {
	status int
	body   string
	err    error
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

func TestAdvice(t *testing.T) {
	const endpoint = "http://127.0.0.1:4567"
	fault := func(code string) answers {
		return answers{status: 400, body: fmt.Sprintf(`{"__type":%q,"message":"no"}`, code)}
	}
	for _, c := range []struct {
		name    string
		network answers
		want    string
	}{
		{"nobody listens", answers{err: io.ErrUnexpectedEOF}, "make localstack"},
		{"a web server that is something else", answers{status: 200, body: "<html>"}, "is not AWS or LocalStack"},
		{"a gateway without a service behind it", answers{status: 502, body: "<html>"}, "is not AWS or LocalStack"},
		{"a wrong key", fault("UnrecognizedClientException"), "AWS_ACCESS_KEY_ID"},
		{"a session that is over", fault("ExpiredTokenException"), "log in again"},
		{"a clock that is wrong", fault("InvalidSignatureException"), "clock"},
		{"a right that is missing", fault("AccessDeniedException"), "rights"},
		{"a service that is busy", fault("ThrottlingException"), ""},
		{"a queue that is not there", fault("QueueDoesNotExist"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			clients, err := New(t.Context(), Settings{
				Endpoint: endpoint, Backoff: time.Millisecond, Transport: func(http.RoundTripper) http.RoundTripper { return c.network },
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = clients.SQS().GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
			got := Advice(err, endpoint)
			if err == nil || !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("got %q of %v, want %q in it", got, err, c.want)
			}
		})
	}
	t.Run("AWS itself is not looked for in LocalStack", func(t *testing.T) {
		clients, err := New(t.Context(), Settings{Endpoint: endpoint, Backoff: time.Millisecond, Transport: func(http.RoundTripper) http.RoundTripper {
			return answers{err: io.ErrUnexpectedEOF}
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = clients.SQS().GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
		if got := Advice(err, ""); !strings.Contains(got, "network") || strings.Contains(got, "localstack") {
			t.Errorf("got %q", got)
		}
	})
}

// until records how long a request may still take.
type until struct{ left map[string]time.Duration }

func (u until) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, _ := r.Context().Deadline()
	u.left[r.Header.Get("X-Amz-Target")] = time.Until(deadline)
	return answers{status: 200, body: "{}"}.RoundTrip(r)
}

// A queue that does not answer is known to have failed in seconds, though a long poll has its time.
func TestOnlyALongPollMayTakeLong(t *testing.T) {
	seen := until{map[string]time.Duration{}}
	clients, err := New(t.Context(), Settings{Endpoint: "http://127.0.0.1:4567", Transport: func(http.RoundTripper) http.RoundTripper { return seen }})
	if err != nil {
		t.Fatal(err)
	}
	client := clients.SQS()
	if _, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("http://127.0.0.1:4567/q")}); err != nil {
		t.Fatal(err)
	}
	if got := seen.left["AmazonSQS.GetQueueUrl"]; got > queueTimeout {
		t.Errorf("a first question may take %v, want at most %v", got, queueTimeout)
	}
	if got := seen.left["AmazonSQS.ReceiveMessage"]; got <= 20*time.Second {
		t.Errorf("a long poll may take %v, want more than the 20 s that it waits", got)
	}
}
