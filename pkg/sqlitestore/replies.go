package sqlitestore

import (
	"context"
	"fmt"

	"holdfast/pkg/pipeline"
)

// PutReply stores the reply only if absent and returns the one that stands.
func (s *Store) PutReply(ctx context.Context, r pipeline.Reply) (stands pipeline.Reply, err error) {
	body := pipeline.Encode(r)
	if err := weigh(string(body)); err != nil {
		return pipeline.Reply{}, named("put reply "+string(r.Key), err)
	}
	var winner []byte
	err = s.write(ctx, func(tx *tx) (err error) {
		winner, err = putOnce(tx, nil,
			`INSERT INTO replies (key, body) VALUES (?, ?) ON CONFLICT (key) DO NOTHING`, []any{r.Key, string(body)},
			`SELECT body FROM replies WHERE key = ?`, []any{r.Key})
		return err
	})
	if err != nil {
		return pipeline.Reply{}, named("put reply "+string(r.Key), err)
	}
	if winner == nil {
		return r, nil
	}
	return pipeline.Decode[pipeline.Reply](winner, "reply "+string(r.Key))
}

// Replies reads stored replies; here none is ever left over.
func (s *Store) Replies(ctx context.Context, keys []pipeline.ReplyKey) (found map[pipeline.ReplyKey]pipeline.Reply, unprocessed []pipeline.ReplyKey, err error) {
	if len(keys) > pipeline.MaxRead {
		return nil, nil, fmt.Errorf("read %d replies: at most %d at once", len(keys), pipeline.MaxRead)
	}
	found = make(map[pipeline.ReplyKey]pipeline.Reply, len(keys))
	err = s.query(ctx, func(row scanner) error {
		reply, err := decodeRow[pipeline.Reply](row)
		found[reply.Key] = reply
		return err
	}, `SELECT body FROM replies WHERE key IN (SELECT value FROM json_each(?))`, text(keys))
	if err != nil {
		return nil, keys, named(fmt.Sprintf("read %d replies", len(keys)), err)
	}
	return found, nil, nil
}
