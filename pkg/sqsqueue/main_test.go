//go:build localstack

package sqsqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/sqsqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clientOf(t testing.TB, settings awsclient.Settings) *sqs.Client {
	t.Helper()
	return awstest.Clients(t, awstest.All, settings).SQS()
}

// open makes a queue of its own for a test.
func open(t testing.TB, client *sqs.Client, p pipeline.Policy) *sqsqueue.Queue {
	t.Helper()
	stack := awstest.Stack()
	awstest.Made(t, sqsqueue.Create(t.Context(), client, stack, "work", p))
	t.Cleanup(func() { awstest.Removed(t, sqsqueue.Delete(context.Background(), client, stack, "work")) })
	q, err := sqsqueue.Open(t.Context(), client, stack, "work", sqsqueue.Addresses{}, p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// policyOf is the policy whose queue has that visibility timeout: SQS counts in whole seconds.
func policyOf(visibility time.Duration, receives int) pipeline.Policy {
	p := pipeline.DefaultPolicy()
	p.AttemptTimeout, p.MaxReceives = visibility*5/6, receives
	return p
}

func rawTo(t testing.TB, client *sqs.Client, url string, body []byte) {
	t.Helper()
	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String(string(body))})
	if err != nil {
		t.Fatal(err)
	}
}

func TestQueue(t *testing.T) {
	client := clientOf(t, awsclient.Settings{})
	pipelinetest.TestQueue(t, func(t *testing.T, cfg pipelinetest.QueueConfig) pipelinetest.QueueHarness {
		q := open(t, client, policyOf(cfg.Visibility, cfg.MaxReceives))
		return pipelinetest.QueueHarness{
			Queue: q,
			Raw:   func(t testing.TB, body []byte) { rawTo(t, client, q.URL(), body) },
			// SQS has a clock of its own, which nobody can move.
			Advance: func(_ testing.TB, d time.Duration) { time.Sleep(d) },
			Lag:     2 * time.Second, // LocalStack looks once a second for what has become visible
		}
	})
}
