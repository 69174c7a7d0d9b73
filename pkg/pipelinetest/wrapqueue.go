package pipelinetest

import (
	"context"
	"time"

	"holdfast/pkg/pipeline"
)

type wrappedQueue struct {
	inner  pipeline.Queue
	around Around
}

var _ pipeline.Choosy = (*wrappedQueue)(nil)

// For is the queue of the same faults that leaves out what is not mine, if the queue behind it can.
func (w *wrappedQueue) For(mine func(context.Context, pipeline.JobID) bool) pipeline.Queue {
	if inner, can := w.inner.(pipeline.Choosy); can {
		return &wrappedQueue{inner.For(mine), w.around}
	}
	return w
}

func messagesOn(messages []pipeline.Message) string {
	if len(messages) == 0 {
		return ""
	}
	return messages[0].Ref().String()
}

func (w *wrappedQueue) Send(ctx context.Context, messages []pipeline.Message) ([]pipeline.Message, error) {
	return ask(ctx, w.around, writes("Send", messagesOn(messages)), func(ctx context.Context) ([]pipeline.Message, error) {
		return w.inner.Send(ctx, messages)
	})
}

func (w *wrappedQueue) Receive(ctx context.Context, limit int, wait time.Duration) ([]pipeline.Delivery, error) {
	return ask(ctx, w.around, writes("Receive", ""), func(ctx context.Context) ([]pipeline.Delivery, error) {
		return w.inner.Receive(ctx, limit, wait)
	})
}

func (w *wrappedQueue) Delete(ctx context.Context, deliveries []pipeline.Delivery) ([]pipeline.Delivery, error) {
	return ask(ctx, w.around, writes("Delete", ""), func(ctx context.Context) ([]pipeline.Delivery, error) {
		return w.inner.Delete(ctx, deliveries)
	})
}

func (w *wrappedQueue) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	return tell(ctx, w.around, writes("Delay", d.Receipt), func(ctx context.Context) error {
		return w.inner.Delay(ctx, d, after)
	})
}

func (w *wrappedQueue) Bury(ctx context.Context, letter pipeline.DeadLetter) error {
	return tell(ctx, w.around, writes("Bury", pipeline.Ref{Job: letter.Job, ID: letter.Task}.String()), func(ctx context.Context) error {
		return w.inner.Bury(ctx, letter)
	})
}

func (w *wrappedQueue) DeadLetters(ctx context.Context, cursor string) ([]pipeline.DeadLetter, string, error) {
	return turn(ctx, w.around, reads("DeadLetters", ""), func(ctx context.Context) ([]pipeline.DeadLetter, string, error) {
		return w.inner.DeadLetters(ctx, cursor)
	})
}

func (w *wrappedQueue) Depth(ctx context.Context) (int, int, error) {
	both, err := ask(ctx, w.around, reads("Depth", ""), func(ctx context.Context) (b pair[int, int], err error) {
		b.first, b.second, err = w.inner.Depth(ctx)
		return b, err
	})
	return both.first, both.second, err
}
