package pipelinetest

import (
	"context"

	"holdfast/pkg/pipeline"
)

// Op is one call of a port.
type Op struct {
	Name  string // of the method: "Claim"
	On    string // what it is about: "job/work#00001", a key, a model
	Write bool   // it changes something
}

// Around stands around every call of a wrapped port. It may do things before and after do, hold it back, or not call
// it. An error that is not do's own replaces the answer.
type Around func(ctx context.Context, op Op, do func(context.Context) error) error

// Wrap is the store with around standing before it. Several wraps nest.
func Wrap(store pipeline.Store, around Around) pipeline.Store { return &wrapped{store, around} }

// WrapBlobs is [Wrap] for blobs.
func WrapBlobs(blobs pipeline.Blobs, around Around) pipeline.Blobs {
	return &wrappedBlobs{blobs, around}
}

// WrapQueue is [Wrap] for a queue.
func WrapQueue(queue pipeline.Queue, around Around) pipeline.Queue {
	return &wrappedQueue{queue, around}
}

// ask makes a call through around. The answer is empty if around has put its own error in the place of the answer.
func ask[T any](ctx context.Context, around Around, op Op, call func(context.Context) (T, error)) (T, error) {
	var answer T
	var own error
	called := false
	err := around(ctx, op, func(ctx context.Context) error {
		called = true
		answer, own = call(ctx)
		return own
	})
	if !called || err != own {
		var none T
		return none, err
	}
	return answer, err
}

func tell(ctx context.Context, around Around, op Op, call func(context.Context) error) error {
	return around(ctx, op, call)
}

type page[T any] struct {
	rows T
	next string
}

// turn is ask for a page.
func turn[T any](ctx context.Context, around Around, op Op, call func(context.Context) (T, string, error)) (T, string, error) {
	p, err := ask(ctx, around, op, func(ctx context.Context) (p page[T], err error) {
		p.rows, p.next, err = call(ctx)
		return p, err
	})
	return p.rows, p.next, err
}

func writes(name, on string) Op { return Op{Name: name, On: on, Write: true} }
func reads(name, on string) Op  { return Op{Name: name, On: on} }

type wrappedBlobs struct {
	inner  pipeline.Blobs
	around Around
}

var _ pipeline.Blobs = (*wrappedBlobs)(nil)

func (w *wrappedBlobs) PutBlob(ctx context.Context, key string, body []byte) error {
	return tell(ctx, w.around, writes("PutBlob", key), func(ctx context.Context) error {
		return w.inner.PutBlob(ctx, key, body)
	})
}

func (w *wrappedBlobs) Blob(ctx context.Context, key string) ([]byte, error) {
	return ask(ctx, w.around, reads("Blob", key), func(ctx context.Context) ([]byte, error) {
		return w.inner.Blob(ctx, key)
	})
}
