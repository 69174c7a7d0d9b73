//go:build localstack

package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/s3blob"
)

// The canary, on a stack whose workers are one process: every promise is kept, and nothing is left.
func TestOnLocalStackSmoke(t *testing.T) {
	d := newDesk(t, strings.Replace(swiftPolicy, "claim_ttl: 2s", "claim_ttl: 4s", 1)) // a dead worker's claims are waited for
	worker := d.starts("worker")
	out := d.does(exitCompleted, "admin", "smoke", "--patience", "1m")
	t.Log(out)
	d.says(out, "4 workers raced for 3 chunks: 3 claims", "SIGKILL to smoke-", "3 workers died of it", "1 dead letter was", "of 84 cells answered or gated, 0 missing", "left: no row")
	if strings.Contains(out, "BROKEN") {
		t.Error("a promise was not kept")
	}
	d.leftNothing()
	d.must(worker.Process.Signal(syscall.SIGTERM))
	worker.ends(exitCompleted)
}

// leftNothing checks that tables, bucket and dead-letter queues are as they were made.
func (d *desk) leftNothing() {
	d.Helper()
	clients := awstest.Clients(d, awstest.All, awsclient.Settings{})
	rows, checkpoints := dynamostore.Tables(d.backend.Stack)
	for _, table := range []string{rows.Name, checkpoints.Name} {
		found, err := clients.DynamoDB().Scan(d.Context(), &dynamodb.ScanInput{TableName: aws.String(table)})
		d.must(err)
		for _, item := range found.Items {
			d.Errorf("left in %s: %v", table, item)
		}
	}
	blobs, err := clients.S3().ListObjectsV2(d.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(s3blob.Bucket(d.backend.Stack))})
	d.must(err)
	for _, object := range blobs.Contents {
		d.Errorf("left in the bucket: %s", aws.ToString(object.Key))
	}
	d.says(d.does(exitCompleted, "dead-letters"), "no dead letters")
}

func TestOnLocalStackSmokeOfAStackThatIsNotReady(t *testing.T) {
	t.Run("without a worker", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		out := d.does(exitFailed, "admin", "smoke", "--patience", "2s")
		d.says(out, "no worker takes from the control queue", "did not keep what is promised")
		d.leftNothing()
	})
	t.Run("that is not there", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		d.says(d.does(exitFailed, "--stack", "nowhere", "admin", "smoke"), "there is no such queue", "admin create")
	})
	t.Run("whose bucket has another name", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		d.says(d.does(exitFailed, "--bucket", "nowhere-blobs", "admin", "smoke"), "the canary did not begin", "--bucket")
	})
	t.Run("with somebody else's job", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		d.does(exitCompleted, "submit", d.doc("contract.txt", contract(0, 2000)), "--start")
		d.says(d.does(exitFailed, "admin", "smoke"), "the canary did not begin", "of tenant local is running", "--beside")
	})
}
