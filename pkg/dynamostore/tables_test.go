//go:build localstack

package dynamostore_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
)

// Tables that somebody began to make and could not finish are finished by the next, deletion by TTL included.
func TestTablesHalfMade(t *testing.T) {
	p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
	broken := clientOf(t, awsclient.Settings{Endpoint: p.URL, Backoff: time.Millisecond})
	client := clientOf(t, awsclient.Settings{})
	stack := awstest.Stack()
	t.Cleanup(func() { awstest.Removed(t, dynamostore.Delete(context.Background(), client, stack)) })
	p.Lose(-1, pipelinetest.OpCalls("UpdateTimeToLive"))
	if err := dynamostore.Create(t.Context(), broken, stack); err == nil {
		t.Fatal("what could not be finished is no error")
	}
	for range 2 {
		awstest.Made(t, dynamostore.Create(t.Context(), client, stack))
	}
	_, checkpoints := dynamostore.Tables(stack)
	out, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(checkpoints.Name)})
	if err != nil {
		t.Fatal(err)
	}
	if d := out.TimeToLiveDescription; d.TimeToLiveStatus != types.TimeToLiveStatusEnabled || aws.ToString(d.AttributeName) != dynamostore.TTLKey {
		t.Errorf("deletion is %s by %q, want it on by %q", d.TimeToLiveStatus, aws.ToString(d.AttributeName), dynamostore.TTLKey)
	}
}
