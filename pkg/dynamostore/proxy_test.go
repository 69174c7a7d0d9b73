//go:build localstack

package dynamostore_test

import (
	"testing"
	"time"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
)

// proxied is a harness whose store reaches the service through a proxy; what happens behind its back does not.
func proxied(t testing.TB) (pipelinetest.Harness, *pipelinetest.Proxy) {
	h := harness(t)
	direct := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, direct)
	p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
	h.Store = dynamostore.New(clientOf(t, awsclient.Settings{Endpoint: p.URL, Backoff: 10 * time.Millisecond}), stack, keeping)
	h.Raw = func(t testing.TB, ref pipeline.Ref, columns map[string]any) { putRaw(t, direct, stack, ref, columns) }
	h.Delete = func(t testing.TB, ref pipeline.Ref) { deleteTask(t, direct, stack, ref) }
	return h, p
}

// The answer to the first sending of every write is lost: each is made, sent again, and recognised as our own.
func TestStoreWithEveryAnswerLost(t *testing.T) {
	h, p := proxied(t)
	p.DropFirst(pipelinetest.AllWrites)
	pipelinetest.TestStoreAlone(t, func(*testing.T) pipelinetest.Harness { return h })
	if p.Seen("UpdateItem") < 100 {
		t.Errorf("%d updates came through the proxy", p.Seen("UpdateItem"))
	}
}
