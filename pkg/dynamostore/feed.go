package dynamostore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/pkg/pipeline"
)

const feedPrefix = "finding#"

func feedKey(job pipeline.JobID, seq int64) item {
	return keyOf(jobPartition(job), fmt.Sprintf("%s%012d", feedPrefix, seq))
}

// fedKey is the row that says that a group is in the feed.
func fedKey(g pipeline.FindingGroup) item {
	return keyOf(jobPartition(g.Job), fmt.Sprintf("fed#%s#%d#%d", g.Task, g.Stage, g.Generation))
}

// PutFindings appends a group once: group and mark in one transaction. A group takes the number after the last one that
// stands, so none ever appears behind another that was read.
func (s *Store) PutFindings(ctx context.Context, g pipeline.FindingGroup) error {
	what := "findings of " + string(g.Task)
	if err := fits(what, len(pipeline.Encode(g))); err != nil {
		return err
	}
	return named("put "+what, repeat(ctx, func() (again bool, err error) {
		last, err := s.lastFed(ctx, g.Job)
		if err != nil {
			return false, err
		}
		g.Seq = last + 1
		group := feedKey(g.Job, g.Seq)
		setBody(group, pipeline.Encode(g))
		return s.append(ctx, fedKey(g), group)
	}))
}

// append puts group and mark, both or neither; again says that another group has taken the number.
func (s *Store) append(ctx context.Context, mark, group item) (again bool, err error) {
	err = s.transact(ctx,
		putIn(put(s.rows, mark, absent(PartitionKey))),
		putIn(put(s.rows, group, absent(PartitionKey))),
	)
	reasons, _ := cancelled(err)
	switch {
	case err == nil:
		return false, nil
	case reasonAt(reasons, 0) == reasonRefused: // it is in the feed
		return false, nil
	case reasonAt(reasons, 1) == reasonRefused, reasonAt(reasons, 0) == reasonConflict, reasonAt(reasons, 1) == reasonConflict:
		return true, nil
	}
	return false, explainCancelled(ctx, err)
}

// lastFed is the number of the last group of the feed.
func (s *Store) lastFed(ctx context.Context, job pipeline.JobID) (int64, error) {
	e := newExpression()
	condition := e.name(PartitionKey) + " = " + e.value(jobPartition(job)) + " AND begins_with(" + e.name(SortKey) + ", " + e.value(feedPrefix) + ")"
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String(s.rows), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String(condition),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ScanIndexForward: aws.Bool(false), Limit: aws.Int32(1),
	})
	if err != nil {
		return 0, explain(ctx, err)
	}
	for _, row := range out.Items {
		return strconv.ParseInt(textIn(row, SortKey)[len(feedPrefix):], 10, 64)
	}
	return 0, nil
}

// Findings is the groups after a cursor.
func (s *Store) Findings(ctx context.Context, job pipeline.JobID, after int64, limit int) ([]pipeline.FindingGroup, error) {
	cursor := ""
	if after > 0 {
		cursor = fmt.Sprintf("%012d", after)
	}
	page, _, err := s.under(ctx, s.rows, jobPartition(job), feedPrefix, cursor, int32(max(0, min(limit, rowsPerPage))))
	if err != nil {
		return nil, named("findings of job "+string(job), err)
	}
	var groups []pipeline.FindingGroup
	size := 0
	for _, row := range page {
		body, err := bodyIn(row)
		if err != nil {
			return nil, named("findings of job "+string(job), err)
		}
		if size += len(body); size > pipeline.MaxPage && len(groups) > 0 {
			return groups, nil // what was left out comes after the last of these
		}
		group, err := pipeline.Decode[pipeline.FindingGroup](body, "finding group")
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	return groups, nil
}
