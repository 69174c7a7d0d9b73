package pipeline

import (
	"context"
	"errors"
	"testing"
)

// shelf is a store of one reply whose text is a blob.
type shelf struct{ err error }

func (shelf) PutReply(_ context.Context, r Reply) (Reply, error) { return r, nil }

func (shelf) Replies(context.Context, []ReplyKey) (map[ReplyKey]Reply, []ReplyKey, error) {
	return map[ReplyKey]Reply{"key": {Key: "key", Blob: "reply/key"}}, nil, nil
}

func (shelf) PutBlob(context.Context, string, []byte) error { return nil }

func (s shelf) Blob(context.Context, string) ([]byte, error) { return []byte("text"), s.err }

func TestReadReplies(t *testing.T) {
	read := func(err error) (map[ReplyKey]Reply, error) {
		s := shelf{err}
		return ReadReplies(t.Context(), s, s, NewRealClock(), []ReplyKey{"key", "key"})
	}
	t.Run("a text that is a blob is fetched", func(t *testing.T) {
		if found, err := read(nil); err != nil || found["key"].Text != "text" {
			t.Errorf("got %+v, %v", found, err)
		}
	})
	t.Run("a reply whose text has gone is absent", func(t *testing.T) {
		if found, err := read(ErrNotFound); err != nil || len(found) != 0 {
			t.Errorf("got %+v, %v", found, err)
		}
	})
	t.Run("a text that cannot be read now is an error, not an answer to pay for again", func(t *testing.T) {
		if found, err := read(ErrBusy); !errors.Is(err, ErrBusy) {
			t.Errorf("got %+v, %v", found, err)
		}
	})
}
