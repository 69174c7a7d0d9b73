package sqsqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/pkg/pipeline"
)

// longestPoll is how long one request waits for messages; a longer wait is several.
const longestPoll = 20 * time.Second

// longestDelay is less than the 12 hours that SQS counts from the receipt of a delivery, which was some time ago.
const longestDelay = 11 * time.Hour

// Queue is a [pipeline.Queue] in SQS.
type Queue struct {
	client      *sqs.Client
	name        string
	url, dead   string
	visibility  time.Duration
	maxReceives int
	now         func() pipeline.Instant
}

var _ pipeline.Queue = (*Queue)(nil)

// Addresses are the URLs of a queue and its dead-letter queue; "" is looked up by its name.
type Addresses struct{ Queue, Dead string }

// Open finds the queue of that name in a deployment. It must be there: see [Create]. What is not looked up is not asked
// for until it is used.
func Open(ctx context.Context, client *sqs.Client, stack, queue string, at Addresses, p pipeline.Policy) (*Queue, error) {
	name, dead := Names(stack, queue)
	q := &Queue{client: client, name: name, url: at.Queue, dead: at.Dead, visibility: p.Visibility(), maxReceives: p.MaxReceives, now: pipeline.NewRealClock().Now}
	for _, look := range []struct {
		name string
		url  *string
	}{{name, &q.url}, {dead, &q.dead}} {
		if *look.url != "" {
			continue
		}
		url, err := urlOf(ctx, client, look.name)
		if err != nil {
			return nil, fmt.Errorf("open queue %s: %w", look.name, explain(ctx, err))
		}
		*look.url = url
	}
	for _, url := range []string{q.url, q.dead} {
		if strings.HasSuffix(url, ".fifo") {
			return nil, fmt.Errorf("open queue %s: %s is a FIFO queue, in which one message that fails holds up all behind it: make a standard queue", name, url)
		}
	}
	return q, nil
}

func (q *Queue) named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("queue %s: %s: %w", q.name, what, err)
}

// Send sends a batch and returns what was not taken.
func (q *Queue) Send(ctx context.Context, messages []pipeline.Message) (failed []pipeline.Message, err error) {
	if len(messages) > pipeline.MaxBatch {
		return nil, q.named("send", fmt.Errorf("%d messages: at most %d at once", len(messages), pipeline.MaxBatch))
	}
	if len(messages) == 0 {
		return nil, nil
	}
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(pipeline.Encode(m))), MessageGroupId: groupOf(m.Tenant),
		}
	}
	out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(q.url), Entries: entries})
	if err != nil {
		return messages, q.named("send", explain(ctx, err))
	}
	for _, entry := range out.Failed {
		if i, ok := index(entry.Id, len(messages)); ok {
			failed = append(failed, messages[i])
		}
	}
	return failed, nil
}

// index is which entry of a batch an id names.
func index(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}

// groupOf is the message group of a tenant: its name, or a hash of it where SQS would not take the name.
func groupOf(tenant string) *string {
	if tenant == "" {
		return nil
	}
	odd := strings.ContainsFunc(tenant, func(c rune) bool { return c <= ' ' || c > '~' })
	if odd || len(tenant) > 128 {
		sum := sha256.Sum256([]byte(tenant))
		tenant = hex.EncodeToString(sum[:])
	}
	return aws.String(tenant)
}

// Receive waits for deliveries in long polls.
func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]pipeline.Delivery, error) {
	if limit < 1 || limit > pipeline.MaxBatch {
		return nil, q.named("receive", fmt.Errorf("%d messages: 1 to %d at once", limit, pipeline.MaxBatch))
	}
	for {
		poll := min(wait, longestPoll)
		messages, err := q.poll(ctx, q.url, limit, poll, q.visibility)
		if err != nil {
			return nil, q.named("receive", err)
		}
		wait -= poll
		if len(messages) > 0 || wait <= 0 {
			return q.deliveries(messages), nil
		}
	}
}

// poll is one request for messages.
func (q *Queue) poll(ctx context.Context, url string, limit int, wait, visibility time.Duration) ([]types.Message, error) {
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: int32(limit),
		WaitTimeSeconds: int32((wait + time.Second - 1) / time.Second), VisibilityTimeout: int32((visibility + time.Second - 1) / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp,
		},
		MessageAttributeNames: []string{letterMark},
	})
	if err != nil {
		return nil, explain(ctx, err)
	}
	return out.Messages, nil
}

func (q *Queue) deliveries(messages []types.Message) (all []pipeline.Delivery) {
	until := q.now().Add(q.visibility)
	for _, m := range messages {
		all = append(all, pipeline.Delivery{
			Body: []byte(aws.ToString(m.Body)), Receipt: receiptOf(until, aws.ToString(m.ReceiptHandle)),
			Receives: int(systemNumber(m, types.MessageSystemAttributeNameApproximateReceiveCount)),
			SentAt:   pipeline.Instant(systemNumber(m, types.MessageSystemAttributeNameSentTimestamp)),
		})
	}
	return all
}

func systemNumber(m types.Message, name types.MessageSystemAttributeName) int64 {
	n, _ := strconv.ParseInt(m.Attributes[string(name)], 10, 64) // 0 where SQS does not say
	return n
}

// Receipt is the receipt of a delivery that somebody else received, by its handle; it counts until then.
func Receipt(handle string, until pipeline.Instant) string { return receiptOf(until, handle) }

// A receipt says until when it counts, so that it needs no answer of SQS to know that it is old.
func receiptOf(until pipeline.Instant, handle string) string {
	return strconv.FormatInt(int64(until), 10) + " " + handle
}

// handleOf is the handle of a receipt that still counts.
func (q *Queue) handleOf(d pipeline.Delivery) (handle *string, counts bool) {
	until, text, _ := strings.Cut(d.Receipt, " ")
	at, err := strconv.ParseInt(until, 10, 64)
	return aws.String(text), err == nil && text != "" && q.now() < pipeline.Instant(at)
}

// Delete removes deliveries. An old receipt removes nothing and is no failure: its message comes back, and its row
// says what it is worth.
func (q *Queue) Delete(ctx context.Context, deliveries []pipeline.Delivery) (failed []pipeline.Delivery, err error) {
	if len(deliveries) > pipeline.MaxBatch {
		return nil, q.named("delete", fmt.Errorf("%d deliveries: at most %d at once", len(deliveries), pipeline.MaxBatch))
	}
	var entries []types.DeleteMessageBatchRequestEntry
	for i, d := range deliveries {
		if handle, counts := q.handleOf(d); counts {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: handle})
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(q.url), Entries: entries})
	if err != nil {
		return deliveries, q.named("delete", explain(ctx, err))
	}
	for _, entry := range out.Failed {
		if i, ok := index(entry.Id, len(deliveries)); ok && aws.ToString(entry.Code) != codeBadReceipt {
			failed = append(failed, deliveries[i])
		}
	}
	return failed, nil
}

// Delay makes a delivery visible again after a time. One whose receipt is old is left as it is.
func (q *Queue) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	handle, counts := q.handleOf(d)
	if !counts {
		return nil
	}
	after = max(0, min(after, longestDelay))
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: aws.String(q.url), ReceiptHandle: handle, VisibilityTimeout: int32((after + time.Second - 1) / time.Second),
	})
	if isOldReceipt(err) {
		return nil
	}
	return q.named("delay", explain(ctx, err))
}

func attributeNames(names ...types.QueueAttributeName) []types.QueueAttributeName { return names }

// Depth is about how many messages are visible and how many in flight.
func (q *Queue) Depth(ctx context.Context) (visible, inFlight int, err error) {
	visible, inFlight, err = q.depth(ctx, q.url)
	return visible, inFlight, q.named("depth", err)
}

func (q *Queue) depth(ctx context.Context, url string) (visible, inFlight int, err error) {
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: attributeNames(
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	)})
	if err != nil {
		return 0, 0, explain(ctx, err)
	}
	visible, _ = strconv.Atoi(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)])
	inFlight, _ = strconv.Atoi(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)])
	return visible, inFlight, nil
}

// URL is the queue's address.
func (q *Queue) URL() string { return q.url }
