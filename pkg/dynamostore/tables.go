package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The names of keys and of the index, wherever the tables are made.
const (
	PartitionKey = "pk"
	SortKey      = "sk"
	DueIndex     = "due"
	DueShardKey  = "due_shard" // only on rows that are listed, so the index is sparse
	DueAtKey     = "due_at"
	TTLKey       = "ttl"      // of the checkpoints table: seconds since 1970
	ClaimKey     = "claim_id" // every claim sets it, and nothing else does to a row that is there
)

// Table is one table as it must be.
type Table struct {
	Name string
	TTL  string // the attribute with a row's end; "" = rows stay
	Due  bool   // has the due index: keys alone, so that a renewal is not charged for it
}

// Tables are the store's tables in a deployment: what makes them, here or in a stack, reads this.
func Tables(stack string) (rows, checkpoints Table) {
	return Table{Name: stack + "-pipeline", Due: true}, Table{Name: stack + "-checkpoints", TTL: TTLKey}
}

func attribute(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
}

func key(name string, kind types.KeyType) types.KeySchemaElement {
	return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind}
}

func (t Table) definition() *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(t.Name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute(PartitionKey, "S"), attribute(SortKey, "S")},
		KeySchema:            []types.KeySchemaElement{key(PartitionKey, "HASH"), key(SortKey, "RANGE")},
	}
	if t.Due {
		in.AttributeDefinitions = append(in.AttributeDefinitions, attribute(DueShardKey, "S"), attribute(DueAtKey, "N"))
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(DueIndex),
			KeySchema:  []types.KeySchemaElement{key(DueShardKey, "HASH"), key(DueAtKey, "RANGE")},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}
	}
	return in
}

// tableWait bounds the wait for a table that is being made.
const tableWait = 5 * time.Minute

// Create makes the tables that are not there and waits until they can be used. Those that are there stay as they are, but
// for the deletion of what is past its end: whoever made them may have died before that was switched on.
func Create(ctx context.Context, client *dynamodb.Client, stack string) error {
	rows, checkpoints := Tables(stack)
	for _, t := range []Table{rows, checkpoints} {
		if err := t.create(ctx, client); err != nil {
			return fmt.Errorf("make table %s: %w", t.Name, explain(ctx, err))
		}
	}
	return nil
}

func (t Table) create(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, t.definition())
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	wait := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second })
	if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(t.Name)}, tableWait); err != nil {
		return err
	}
	if t.TTL == "" {
		return nil
	}
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(t.Name)})
	if err != nil {
		return err
	}
	if d := ttl.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == t.TTL &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(t.Name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(t.TTL), Enabled: aws.Bool(true)},
	})
	return err
}

// Delete removes the tables and all that is in them.
func Delete(ctx context.Context, client *dynamodb.Client, stack string) error {
	rows, checkpoints := Tables(stack)
	for _, t := range []Table{rows, checkpoints} {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(t.Name)})
		var missing *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &missing) {
			return fmt.Errorf("delete table %s: %w", t.Name, explain(ctx, err))
		}
	}
	return nil
}
