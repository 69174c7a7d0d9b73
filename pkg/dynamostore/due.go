package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/pipeline"
)

// Due is one page of the listed rows of a shard that are due, most overdue first. The index, which may lag, has only
// their keys: the rows are then read as they stand, so nobody acts on an old sight of one.
func (s *Store) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	if shard < 0 || shard >= pipeline.DueShards {
		return nil, "", fmt.Errorf("due shard %d: there are %d", shard, pipeline.DueShards)
	}
	found, next, err := s.listed(ctx, strconv.Itoa(shard), now, cursor)
	if err != nil {
		return nil, "", named(fmt.Sprintf("due rows of shard %d", shard), err)
	}
	var rows []pipeline.Task
	for _, row := range found {
		if t := taskOf(row); t.Listed() && t.DueAt <= now {
			rows = append(rows, t)
		}
	}
	return rows, next, nil
}

// dueCursor is the last key of a page of the index.
type dueCursor struct {
	Due       int64  `json:"due"`
	Partition string `json:"pk"`
	Sort      string `json:"sk"`
}

// listed is one page of the rows of a shard of the index up to a time, in the index's order, as they stand.
func (s *Store) listed(ctx context.Context, shard string, until pipeline.Instant, cursor string) (rows []item, next string, err error) {
	e := newExpression()
	condition := e.name(DueShardKey) + " = " + e.value(shard) + " AND " + e.name(DueAtKey) + " <= " + e.value(int64(until))
	in := &dynamodb.QueryInput{
		TableName: aws.String(s.rows), IndexName: aws.String(DueIndex), KeyConditionExpression: aws.String(condition),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, Limit: aws.Int32(pipeline.MaxRead),
	}
	if cursor != "" {
		var c dueCursor
		if err := json.Unmarshal([]byte(cursor), &c); err != nil {
			return nil, "", fmt.Errorf("there is no page %q", cursor)
		}
		in.ExclusiveStartKey = keyOf(c.Partition, c.Sort)
		in.ExclusiveStartKey[DueShardKey], in.ExclusiveStartKey[DueAtKey] = valueOf(shard), valueOf(c.Due)
	}
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return nil, "", explain(ctx, err)
	}
	if last := out.LastEvaluatedKey; last != nil {
		next = string(pipeline.Encode(dueCursor{numberIn(last, DueAtKey), textIn(last, PartitionKey), textIn(last, SortKey)}))
	}
	rows, err = s.readAll(ctx, s.rows, out.Items)
	return rows, next, err
}

// readAll reads the rows with these keys, at most MaxRead, in the order of the keys; those that are gone are left out.
func (s *Store) readAll(ctx context.Context, table string, keys []item) ([]item, error) {
	found := map[string]item{}
	ask := make([]item, 0, len(keys))
	for _, k := range keys {
		ask = append(ask, keyIn(k))
	}
	err := repeat(ctx, func() (again bool, err error) {
		var got []item
		got, ask, err = s.readBatch(ctx, table, ask)
		for _, row := range got {
			found[textIn(row, PartitionKey)+"\x00"+textIn(row, SortKey)] = row
		}
		return len(ask) > 0, err
	})
	if err != nil {
		return nil, err
	}
	var rows []item
	for _, k := range keys {
		if row, is := found[textIn(k, PartitionKey)+"\x00"+textIn(k, SortKey)]; is {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// readBatch reads at most MaxRead rows consistently and returns the keys that could not be read now.
func (s *Store) readBatch(ctx context.Context, table string, keys []item) (rows, unprocessed []item, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		table: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}})
	if err != nil {
		return nil, nil, explain(ctx, err)
	}
	return out.Responses[table], out.UnprocessedKeys[table].Keys, nil
}
