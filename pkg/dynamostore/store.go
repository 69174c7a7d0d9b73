package dynamostore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/pkg/pipeline"
)

// Store is a [pipeline.Store] in the tables of one deployment.
type Store struct {
	client      *dynamodb.Client
	rows        string // table of jobs, tasks, budgets, feeds, limits
	checkpoints string // table of items and replies
	budgets     sights
	keeping     Keeping
}

var _ pipeline.Store = (*Store)(nil)

// New is the store of a deployment, whose tables must be there: see [Create]. The client decides how often a request
// is sent and how long it may take.
func New(client *dynamodb.Client, stack string, keeping Keeping) *Store {
	rows, checkpoints := Tables(stack)
	return &Store{client: client, rows: rows.Name, checkpoints: checkpoints.Name, keeping: keeping}
}

// Beginnings of partition keys; who may reach which is said where access is given.
const (
	JobPartitions    = "job#"
	TenantPartitions = "tenant#" // a tenant's list of jobs: every submit writes into it
	LimitPartitions  = "limit#"
	ReplyPartitions  = "reply#"
)

func jobPartition(job pipeline.JobID) string      { return JobPartitions + string(job) }
func tenantPartition(tenant string) string        { return TenantPartitions + tenant }
func limitPartition(model string) string          { return LimitPartitions + model }
func replyPartition(key pipeline.ReplyKey) string { return ReplyPartitions + string(key) }

// fits says whether a row may be written: DynamoDB takes no more than MaxItem.
func fits(what string, bytes int) error {
	if bytes > pipeline.MaxItem {
		return fmt.Errorf("%s has %d bytes, an item at most %d: %w", what, bytes, pipeline.MaxItem, pipeline.ErrTooLarge)
	}
	return nil
}

// named adds what was being done.
func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// get reads one row consistently; nil if there is none.
func (s *Store) get(ctx context.Context, table string, key item) (item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, explain(ctx, err)
	}
	return out.Item, nil
}

// putOnce puts a row only if absent; it returns the row that stands otherwise.
func (s *Store) putOnce(ctx context.Context, table string, row item) (stands item, err error) {
	return s.putIf(ctx, table, row, absent(PartitionKey))
}

// putIf puts a row where a condition holds of what stands there; it returns the row that stands otherwise.
func (s *Store) putIf(ctx context.Context, table string, row item, condition clause) (stands item, err error) {
	_, err = s.client.PutItem(ctx, put(table, row, condition))
	if old, is := refused(err); is {
		if old == nil {
			return s.get(ctx, table, keyIn(row))
		}
		return old, nil
	}
	return nil, explain(ctx, err)
}

// rounds bounds how often a write is made again because others wrote the same row in between.
const rounds = 60

// repeat makes a write until it was made, was refused for good, or rounds are over: each round begins with what the
// last one was shown. again says that another writer came in between.
func repeat(ctx context.Context, do func() (again bool, err error)) error {
	for n := range rounds {
		again, err := do()
		if err != nil || !again {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
	return fmt.Errorf("others wrote the same row %d times in between: %w", rounds, pipeline.ErrBusy)
}

// pause waits a little, longer after many rounds: writers of one row must not meet again and again.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(min(n+1, 20)))+1) * 2 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
