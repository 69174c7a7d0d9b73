package dynamostore

import (
	"context"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// Each reply has a partition of its own: a thousand calls at once must not meet on one key.
func replyRow(key pipeline.ReplyKey) item { return keyOf(replyPartition(key), "reply") }

func replyOf(row item) (pipeline.Reply, error) {
	what := "reply " + strings.TrimPrefix(textIn(row, PartitionKey), "reply#")
	body, err := bodyIn(row)
	if err != nil {
		return pipeline.Reply{}, named(what, err)
	}
	return pipeline.Decode[pipeline.Reply](body, what)
}

// PutReply stores a reply only if absent.
func (s *Store) PutReply(ctx context.Context, r pipeline.Reply) (pipeline.Reply, error) {
	body := pipeline.Encode(r)
	if err := fits("reply "+string(r.Key), len(body)); err != nil {
		return pipeline.Reply{}, err
	}
	row := replyRow(r.Key)
	setBody(row, body)
	if s.keeping.For > 0 {
		row[TTLKey] = valueOf(s.keeping.replyEnd())
	}
	stands, err := s.putIf(ctx, s.checkpoints, row, s.keeping.free())
	if err != nil {
		return pipeline.Reply{}, named("put reply "+string(r.Key), err)
	}
	if stands != nil {
		return replyOf(stands)
	}
	return r, nil
}

// Replies reads a batch.
func (s *Store) Replies(ctx context.Context, keys []pipeline.ReplyKey) (map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey, error) {
	if len(keys) > pipeline.MaxRead {
		return nil, nil, fmt.Errorf("read %d replies: a batch has at most %d", len(keys), pipeline.MaxRead)
	}
	asked := map[pipeline.ReplyKey]bool{} // a key that comes twice is refused
	var ask []item
	for _, key := range keys {
		if !asked[key] {
			asked[key] = true
			ask = append(ask, replyRow(key))
		}
	}
	rows, left, err := s.readBatch(ctx, s.checkpoints, ask)
	if err != nil {
		return nil, nil, named(fmt.Sprintf("read %d replies", len(ask)), err)
	}
	found := map[pipeline.ReplyKey]pipeline.Reply{}
	for _, row := range rows {
		switch {
		case s.keeping.over(row):
			continue
		case s.keeping.worn(row):
			is, err := s.refresh(ctx, row)
			if err != nil {
				return nil, nil, named("keep reply "+textIn(row, PartitionKey), err)
			}
			if !is {
				continue
			}
		}
		reply, err := replyOf(row)
		if err != nil {
			return nil, nil, err
		}
		found[reply.Key] = reply
	}
	var unprocessed []pipeline.ReplyKey
	for _, key := range left {
		unprocessed = append(unprocessed, pipeline.ReplyKey(strings.TrimPrefix(textIn(key, PartitionKey), "reply#")))
	}
	return found, unprocessed, nil
}
