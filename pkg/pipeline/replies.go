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
	waiting := distinct(keys)
	for idle := 0; len(waiting) > 0; {
		n := min(len(waiting), MaxRead)
		found, unprocessed, err := replies.Replies(ctx, waiting[:n])
		if err != nil {
			return nil, fmt.Errorf("read %d replies: %w", n, err)
		}
		for key, reply := range found {
			if reply.Blob != "" {
				body, err := blobs.Blob(ctx, reply.Blob)
				if errors.Is(err, ErrNotFound) {
					continue // to be asked again
				}
				if err != nil {
					return nil, fmt.Errorf("read the text of reply %s: %w", key, err)
				}
				reply.Text = string(body)
			}
			all[key] = reply
		}
		waiting = append(waiting[n:], unprocessed...)
		idle++
		if len(unprocessed) < n {
			idle = 0
		}
		if idle > replyRounds {
			return nil, fmt.Errorf("read %d replies: %w: they stay unprocessed", len(waiting), ErrBusy)
		}
		if len(unprocessed) > 0 {
			if err := clock.Sleep(ctx, replyPause); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
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
