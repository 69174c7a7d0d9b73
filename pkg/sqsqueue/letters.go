package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/pkg/pipeline"
)

const (
	// letterMark is the message attribute of a dead letter that we sent. What lacks it was moved by SQS.
	letterMark = "holdfast-letter"
	// maxLetter bounds a letter's body; the oldest records of a longer one are left out.
	maxLetter = 250 << 10
	// lookFor is how long letters are invisible to others while they are read: they are given back at the end.
	lookFor = 60 * time.Second
	// emptyPolls is how many polls in a row must find nothing: one alone does not say that a queue is empty.
	emptyPolls = 3
	// mostLetters bounds one look.
	mostLetters = 10_000
)

// Bury sends a dead letter, with as many of its records as fit.
func (q *Queue) Bury(ctx context.Context, letter pipeline.DeadLetter) error {
	if letter.BuriedAt == 0 {
		letter.BuriedAt = q.now()
	}
	body := pipeline.Encode(letter)
	for len(body) > maxLetter && len(letter.Context) > 0 {
		letter.Context = letter.Context[1:]
		body = pipeline.Encode(letter)
	}
	if len(body) > maxLetter {
		return q.named("bury", fmt.Errorf("the letter has %d bytes: %w", len(body), pipeline.ErrTooLarge))
	}
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(q.dead), MessageBody: aws.String(string(body)),
		MessageAttributes: map[string]types.MessageAttributeValue{
			letterMark: {DataType: aws.String("Number"), StringValue: aws.String(strconv.Itoa(pipeline.FormatVersion))},
		},
	})
	return q.named("bury", explain(ctx, err))
}

// DeadLetters is all dead letters, oldest first, in one page: SQS has no cursor. Each is received and given back at
// once when all were seen; a second reader at the same moment sees only what the first does not hold.
func (q *Queue) DeadLetters(ctx context.Context, cursor string) (letters []pipeline.DeadLetter, next string, err error) {
	if cursor != "" {
		return nil, "", q.named("dead letters", fmt.Errorf("there is no page %q", cursor))
	}
	held, err := q.hold(ctx)
	back := q.giveBack(context.WithoutCancel(ctx), held)
	if err := errors.Join(err, back); err != nil {
		return nil, "", q.named("dead letters", err)
	}
	for _, m := range held {
		letters = append(letters, q.letterOf(m))
	}
	slices.SortStableFunc(letters, func(a, b pipeline.DeadLetter) int {
		return cmp.Or(cmp.Compare(a.BuriedAt, b.BuriedAt), cmp.Compare(a.SentAt, b.SentAt))
	})
	return letters, "", nil
}

// Unbury removes the dead letters of one job, for good, and gives all others back. It returns how many it removed; a look
// at SQS may miss some, so whoever wants all gone looks again.
func (q *Queue) Unbury(ctx context.Context, job pipeline.JobID) (removed int, err error) {
	held, err := q.hold(ctx)
	var its, others []types.Message
	for _, m := range held {
		if q.letterOf(m).Job == job {
			its = append(its, m)
		} else {
			others = append(others, m)
		}
	}
	errs := []error{err, q.giveBack(context.WithoutCancel(ctx), others)}
	for batch := range slices.Chunk(its, pipeline.MaxBatch) {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
		for i, m := range batch {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
		}
		out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(q.dead), Entries: entries})
		if err != nil {
			errs = append(errs, explain(ctx, err))
			continue
		}
		removed += len(batch) - len(out.Failed)
		if len(out.Failed) > 0 {
			errs = append(errs, fmt.Errorf("%d of %d letters were not removed: %s", len(out.Failed), len(batch), aws.ToString(out.Failed[0].Message)))
		}
	}
	return removed, q.named("remove the dead letters of job "+string(job), errors.Join(errs...))
}

// hold receives everything that is there.
func (q *Queue) hold(ctx context.Context) (held []types.Message, err error) {
	seen := map[string]bool{}
	for empty := 0; empty < emptyPolls && len(held) < mostLetters; {
		some, err := q.poll(ctx, q.dead, pipeline.MaxBatch, 0, lookFor)
		if err != nil {
			return held, err
		}
		empty++
		for _, m := range some {
			empty = 0
			if id := aws.ToString(m.MessageId); !seen[id] {
				seen[id] = true
				held = append(held, m)
			}
		}
	}
	return held, nil
}

// giveBack makes letters visible again at once.
func (q *Queue) giveBack(ctx context.Context, held []types.Message) error {
	var errs []error
	for batch := range slices.Chunk(held, pipeline.MaxBatch) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, m := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
		}
		_, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(q.dead), Entries: entries})
		errs = append(errs, explain(ctx, err)) // those that fail come back by themselves
	}
	return errors.Join(errs...)
}

// letterOf reads a letter of ours, or makes one of what SQS has moved.
func (q *Queue) letterOf(m types.Message) pipeline.DeadLetter {
	body := []byte(aws.ToString(m.Body))
	if _, ours := m.MessageAttributes[letterMark]; ours {
		letter, err := pipeline.Decode[pipeline.DeadLetter](body, "dead letter")
		if err == nil {
			return letter
		}
	}
	sent := pipeline.Instant(systemNumber(m, types.MessageSystemAttributeNameSentTimestamp))
	letter := pipeline.DeadLetter{Body: body, Receives: q.maxReceives, SentAt: sent, BuriedAt: sent, Native: true} // SQS does not say when it moved it
	if decoded, err := pipeline.DecodeMessage(body); err == nil {
		letter.Job, letter.Task = decoded.Job, decoded.Task
	}
	return letter
}
