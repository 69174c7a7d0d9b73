package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// replyRounds bounds how often in a row a batch read may process nothing, each time before replyPause.
const (
	replyRounds = 6
	replyPause  = 50 * time.Millisecond
)

// ReadReplies reads any number of keys, in batches, and fetches the texts that were too large for an item. Keys that
// are not stored are absent; so is one whose text has gone. A text that cannot be read now is an error: taken for one
// that has gone, it would be paid for again.
func ReadReplies(ctx context.Context, replies Replies, blobs Blobs, clock Clock, keys []ReplyKey) (map[ReplyKey]Reply, error) {
	all := make(map[ReplyKey]Reply, len(keys))
	err := EachReply(ctx, replies, clock, keys, func(reply Reply) error {
		if reply.Blob != "" {
			body, err := blobs.Blob(ctx, reply.Blob)
			if errors.Is(err, ErrNotFound) {
				return nil // to be asked again
			}
			if err != nil {
				return fmt.Errorf("read the text of reply %s: %w", reply.Key, err)
			}
			reply.Text = string(body)
		}
		all[reply.Key] = reply
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// EachReply reads any number of keys, in batches, and hands over each reply that is stored, as it is stored: without
// the text of one that was too large for an item.
func EachReply(ctx context.Context, replies Replies, clock Clock, keys []ReplyKey, do func(Reply) error) error {
	waiting := distinct(keys)
	for idle := 0; len(waiting) > 0; {
		n := min(len(waiting), MaxRead)
		found, unprocessed, err := replies.Replies(ctx, waiting[:n])
		if err != nil {
			return fmt.Errorf("read %d replies: %w", n, err)
		}
		for _, reply := range found {
			if err := do(reply); err != nil {
				return err
			}
		}
		waiting = append(waiting[n:], unprocessed...)
		idle++
		if len(unprocessed) < n {
			idle = 0
		}
		if idle > replyRounds {
			return fmt.Errorf("read %d replies: %w: they stay unprocessed", len(waiting), ErrBusy)
		}
		if len(unprocessed) > 0 {
			if err := clock.Sleep(ctx, replyPause); err != nil {
				return err
			}
		}
	}
	return nil
}

func distinct(keys []ReplyKey) []ReplyKey {
	seen := make(map[ReplyKey]bool, len(keys))
	var once []ReplyKey
	for _, key := range keys {
		if !seen[key] {
			seen[key] = true
			once = append(once, key)
		}
	}
	return once
}
