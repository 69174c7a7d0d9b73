package sqsqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/pkg/pipeline"
)

// Names of the queue and its dead-letter queue in a deployment: what makes them, here or in a stack, reads this.
func Names(stack, queue string) (name, dead string) {
	name = stack + "-" + queue
	return name, name + "-dead"
}

// Retention of a message that nobody takes: less than that of dead letters by so much that one which is dead-lettered
// at its very end can still be looked at for a week. (The dead-letter queue counts from the first sending.)
const Retention = 4 * 24 * time.Hour

// longestVisibility is what SQS takes.
const longestVisibility = 12 * time.Hour

// Attributes of a queue that delivers, whose dead letters go to the queue with that address. Its visibility is what
// functions behind it need; a poller asks for its own.
func Attributes(p pipeline.Policy, deadARN string) map[string]string {
	return map[string]string{
		"VisibilityTimeout":      seconds(min(p.FunctionVisibility(), longestVisibility)),
		"MessageRetentionPeriod": seconds(Retention),
		"RedrivePolicy":          fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, deadARN, p.MaxReceives),
	}
}

// DeadAttributes are those of a dead-letter queue. It has no redrive policy: looking at letters must not move them on.
func DeadAttributes(p pipeline.Policy) map[string]string {
	return map[string]string{"MessageRetentionPeriod": seconds(p.DeadLetterRetention)}
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Create makes the queue and its dead-letter queue unless they are there; those that are get these settings.
func Create(ctx context.Context, client *sqs.Client, stack, queue string, p pipeline.Policy) error {
	name, dead := Names(stack, queue)
	deadURL, err := create(ctx, client, dead, DeadAttributes(p))
	if err != nil {
		return err
	}
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(deadURL), AttributeNames: attributeNames("QueueArn")})
	if err != nil {
		return fmt.Errorf("read the address of queue %s: %w", dead, explain(ctx, err))
	}
	_, err = create(ctx, client, name, Attributes(p, out.Attributes["QueueArn"]))
	return err
}

func create(ctx context.Context, client *sqs.Client, name string, attributes map[string]string) (url string, err error) {
	url, err = urlOf(ctx, client, name)
	if err == nil {
		_, err = client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: aws.String(url), Attributes: attributes})
		if err != nil {
			return "", fmt.Errorf("change queue %s: %w", name, explain(ctx, err))
		}
		return url, nil
	}
	if codeOf(err) != codeNoQueue {
		return "", fmt.Errorf("look for queue %s: %w", name, explain(ctx, err))
	}
	out, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		return "", fmt.Errorf("make queue %s: %w", name, explain(ctx, err))
	}
	return aws.ToString(out.QueueUrl), nil
}

func urlOf(ctx context.Context, client *sqs.Client, name string) (string, error) {
	out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

// Delete removes both queues and all that is in them.
func Delete(ctx context.Context, client *sqs.Client, stack, queue string) error {
	name, dead := Names(stack, queue)
	for _, name := range []string{name, dead} {
		url, err := urlOf(ctx, client, name)
		if err == nil {
			_, err = client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(url)})
		}
		if err != nil && codeOf(err) != codeNoQueue {
			return fmt.Errorf("delete queue %s: %w", name, explain(ctx, err))
		}
	}
	return nil
}
