//go:build localstack

package dynamostore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keeping is the store's of every test here: no job of theirs is as old.
var keeping = dynamostore.Keeping{For: pipeline.DefaultPolicy().Retention, Now: pipeline.NewRealClock().Now}

func clientOf(t testing.TB, settings awsclient.Settings) *dynamodb.Client {
	t.Helper()
	return awstest.Clients(t, awstest.DynamoDB, settings).DynamoDB()
}

// stackOf makes tables of their own for a test.
func stackOf(t testing.TB, client *dynamodb.Client) string {
	t.Helper()
	stack := awstest.Stack()
	awstest.Made(t, dynamostore.Create(t.Context(), client, stack))
	t.Cleanup(func() { awstest.Removed(t, dynamostore.Delete(context.Background(), client, stack)) })
	return stack
}

func harness(t testing.TB) pipelinetest.Harness {
	client := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, client)
	return pipelinetest.Harness{
		Store:  dynamostore.New(client, stack, keeping),
		Blobs:  memory.New(), // the blobs of this backend are s3blob's
		Raw:    func(t testing.TB, ref pipeline.Ref, columns map[string]any) { putRaw(t, client, stack, ref, columns) },
		Delete: func(t testing.TB, ref pipeline.Ref) { deleteTask(t, client, stack, ref) },
	}
}

func taskKey(ref pipeline.Ref) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		dynamostore.PartitionKey: &types.AttributeValueMemberS{Value: "job#" + string(ref.Job)},
		dynamostore.SortKey:      &types.AttributeValueMemberS{Value: "task#" + string(ref.ID)},
	}
}

// putRaw puts a row with only these columns, and its place in the due index.
func putRaw(t testing.TB, client *dynamodb.Client, stack string, ref pipeline.Ref, columns map[string]any) {
	t.Helper()
	row := taskKey(ref)
	row[dynamostore.DueShardKey] = &types.AttributeValueMemberS{Value: fmt.Sprint(ref.DueShard())}
	for column, v := range columns {
		switch v := v.(type) {
		case string:
			row[column] = &types.AttributeValueMemberS{Value: v}
		case int, int64, pipeline.Instant:
			row[column] = &types.AttributeValueMemberN{Value: fmt.Sprintf("%d", v)}
		default:
			t.Fatalf("column %s: no column holds a %T", column, v)
		}
	}
	rows, _ := dynamostore.Tables(stack)
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(rows.Name), Item: row}); err != nil {
		t.Fatal(err)
	}
}

func deleteTask(t testing.TB, client *dynamodb.Client, stack string, ref pipeline.Ref) {
	t.Helper()
	rows, _ := dynamostore.Tables(stack)
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(rows.Name), Key: taskKey(ref)}); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	h := harness(t)
	pipelinetest.TestStore(t, func(*testing.T) pipelinetest.Harness { return h })
}

func TestDifferential(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			reference := memory.New()
			pipelinetest.Differential(t, seed, 300, harness(t), pipelinetest.Harness{
				Store: reference, Blobs: reference,
				Raw: func(t testing.TB, ref pipeline.Ref, columns map[string]any) {
					if err := reference.PutRaw(ref, columns); err != nil {
						t.Fatal(err)
					}
				},
				Delete: func(_ testing.TB, ref pipeline.Ref) { reference.DeleteTask(ref) },
			})
		})
	}
}
