package stacks_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"holdfast/cdk/template"
	"holdfast/pkg/config"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/s3blob"
	"holdfast/pkg/sqsqueue"
)

// These ids are for ever: another id is another resource, and the data stays behind in the old one.
func TestTheLogicalIdsOfWhatHoldsDataArePinned(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		var got []string
		for id, r := range d.state.Resources {
			if !strings.HasSuffix(r.Type, "Policy") {
				got = append(got, r.Type+" "+id)
			}
		}
		slices.Sort(got)
		same(t, "resources", got, []string{
			"AWS::DynamoDB::Table CheckpointsTable", "AWS::DynamoDB::Table PipelineTable", "AWS::ECR::Repository Images",
			"AWS::S3::Bucket Blobs", "AWS::S3::Bucket BlobsLog", "AWS::SNS::Topic AlarmTopic",
			"AWS::SQS::Queue ControlDeadQueue", "AWS::SQS::Queue ControlQueue", "AWS::SQS::Queue WorkDeadQueue", "AWS::SQS::Queue WorkQueue",
		})
	})
}

func TestStateStaysWhenItsStackGoes(t *testing.T) {
	d := deployed(t)
	for id, r := range d.state.Resources {
		if r.DeletionPolicy != "RetainExceptOnCreate" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s (%s) would go with the stack: %q, %q", id, r.Type, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
	if !*d.stacks[0].TerminationProtection() {
		t.Error("the stack itself could be deleted")
	}
	for _, table := range d.state.Of("AWS::DynamoDB::Table") {
		same(t, table.ID+" cannot be deleted", table.Get("DeletionProtectionEnabled"), true)
		same(t, table.ID+" can be restored to any second", table.Get("PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled"), true)
	}
}

func TestTablesAreThoseOfTheStore(t *testing.T) {
	d := deployed(t, "stack=blue")
	rows, checkpoints := dynamostore.Tables("blue")
	for id, want := range map[string]dynamostore.Table{"PipelineTable": rows, "CheckpointsTable": checkpoints} {
		table := d.state.Resources[id]
		same(t, id+" name", table.Text("TableName"), want.Name)
		same(t, id+" key", table.Get("KeySchema"), []any{
			map[string]any{"AttributeName": dynamostore.PartitionKey, "KeyType": "HASH"},
			map[string]any{"AttributeName": dynamostore.SortKey, "KeyType": "RANGE"},
		})
		same(t, id+" is paid by use", table.Text("BillingMode"), "PAY_PER_REQUEST")
		same(t, id+" time to live", table.Text("TimeToLiveSpecification.AttributeName"), want.TTL)
		indexes, _ := table.Get("GlobalSecondaryIndexes").([]any)
		same(t, id+" has an index", len(indexes) == 1, want.Due)
		if want.Due {
			same(t, id+" index", indexes[0], map[string]any{
				"IndexName": dynamostore.DueIndex, "Projection": map[string]any{"ProjectionType": "KEYS_ONLY"},
				"KeySchema": []any{
					map[string]any{"AttributeName": dynamostore.DueShardKey, "KeyType": "HASH"},
					map[string]any{"AttributeName": dynamostore.DueAtKey, "KeyType": "RANGE"},
				},
			})
		}
	}
}

func TestQueuesAreThoseOfThePolicy(t *testing.T) {
	d := deployed(t, "stack=blue")
	p := d.settings.Policy
	for id, queue := range map[string]string{"ControlQueue": pipeline.ControlQueue, "WorkQueue": pipeline.WorkQueue} {
		live, dead := d.state.Resources[id], d.state.Resources[strings.Replace(id, "Queue", "DeadQueue", 1)]
		name, deadName := sqsqueue.Names("blue", queue)
		same(t, id, live.Text("QueueName"), name)
		same(t, dead.ID, dead.Text("QueueName"), deadName)
		same(t, id+": receives before the dead-letter queue", live.Number("RedrivePolicy.maxReceiveCount"), p.MaxReceives)
		same(t, id+": its dead-letter queue", live.Text("RedrivePolicy.deadLetterTargetArn"), "${"+dead.ID+".Arn}")
		same(t, id+": visibility", live.Number("VisibilityTimeout"), p.FunctionVisibility().Seconds())
		same(t, id+": retention", live.Number("MessageRetentionPeriod"), sqsqueue.Retention.Seconds())
		same(t, dead.ID+": retention", dead.Number("MessageRetentionPeriod"), p.DeadLetterRetention.Seconds())
		if dead.Get("RedrivePolicy") != nil {
			t.Errorf("%s moves letters on: looking at them would lose them", dead.ID)
		}
		if sources := template.Texts(dead.Get("RedriveAllowPolicy.sourceQueueArns")); len(sources) != 1 || !strings.HasSuffix(sources[0], ":"+name) {
			t.Errorf("%s takes dead letters of %v", dead.ID, sources)
		}
	}
}

func TestVisibilityIsSixTimesTheTimeoutOfTheFunctionBehindTheQueue(t *testing.T) {
	d := deployed(t)
	for queue, function := range map[string]string{"ControlQueue": "control", "WorkQueue": "work"} {
		for _, fn := range d.workers.Of("AWS::Lambda::Function") {
			if fn.Text("FunctionName") != "holdfast-"+function {
				continue
			}
			timeout, visible := fn.Number("Timeout"), d.state.Resources[queue].Number("VisibilityTimeout")
			if timeout == 0 || visible < 6*timeout {
				t.Errorf("%s: got a visibility of %v s for a timeout of %v s", queue, visible, timeout)
			}
		}
	}
}

// refusesTheClear says that a policy denies everybody those actions without TLS, and nothing else is asked for it.
func refusesTheClear(policy template.Resource, actions string) bool {
	list, _ := policy.Get("PolicyDocument.Statement").([]any)
	return slices.ContainsFunc(list, func(each any) bool {
		s := template.Resource{Properties: each.(map[string]any)}
		everybody := s.Text("Principal") == "*" || s.Text("Principal.AWS") == "*"
		return everybody && s.Text("Effect") == "Deny" && s.Text("Action") == actions && fmt.Sprint(s.Get("Condition")) == "map[Bool:map[aws:SecureTransport:false]]"
	})
}

func TestEverythingIsEncryptedAndServedOverTLSAlone(t *testing.T) {
	d := deployed(t)
	for _, queue := range d.state.Of("AWS::SQS::Queue") {
		same(t, queue.ID+" is encrypted", queue.Get("SqsManagedSseEnabled"), true)
	}
	for _, bucket := range d.state.Of("AWS::S3::Bucket") {
		encryption := fmt.Sprint(bucket.Get("BucketEncryption"))
		if !strings.Contains(encryption, "AES256") {
			t.Errorf("%s: encryption %s", bucket.ID, encryption)
		}
		for _, block := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			same(t, bucket.ID+" "+block, bucket.Get("PublicAccessBlockConfiguration."+block), true)
		}
	}
	guarded := map[string]bool{}
	for kind, actions := range map[string]string{"AWS::SQS::QueuePolicy": "sqs:*", "AWS::S3::BucketPolicy": "s3:*", "AWS::SNS::TopicPolicy": "sns:Publish"} {
		for _, policy := range d.state.Of(kind) {
			if !refusesTheClear(policy, actions) {
				continue
			}
			for _, of := range slices.Concat(template.Texts(policy.Get("Queues")), template.Texts(policy.Get("Bucket")), template.Texts(policy.Get("Topics"))) {
				guarded[of] = true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.state.Resources)) {
		switch d.state.Resources[id].Type {
		case "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::SNS::Topic":
			if !guarded["${"+id+"}"] {
				t.Errorf("%s is served in the clear (those that are not: %v)", id, guarded)
			}
		}
	}
}

// What must be there is never deleted by the bucket; what is on its way is, by the day.
func TestOnlyBlobsThatAreOnTheirWayHaveAnEnd(t *testing.T) {
	d := deployed(t, "log-days=7")
	ends := func(id string) map[string]string {
		all := map[string]string{}
		rules, _ := d.state.Resources[id].Get("LifecycleConfiguration.Rules").([]any)
		for _, rule := range rules {
			r := template.Resource{Properties: rule.(map[string]any)}
			same(t, id+" rule", r.Text("Status"), "Enabled")
			all[r.Text("Prefix")] = r.Text("ExpirationInDays") + " " + r.Text("NoncurrentVersionExpiration.NoncurrentDays")
		}
		return all
	}
	same(t, "blobs", ends("Blobs"), map[string]string{"": " 35", config.UploadPrefix: "1 1", config.AnswerPrefix: "1 1"})
	same(t, "log", ends("BlobsLog"), map[string]string{"": "7 "})
	same(t, "who looked at what is written down", d.state.Resources["Blobs"].Text("LoggingConfiguration.DestinationBucketName"), "${BlobsLog}")
}

// A topic with a policy of its own takes nothing from CloudWatch unless that says so: alarms would ring and nobody hear.
func TestAlarmsMayPublishToTheirTopicAndNobodyElsesMay(t *testing.T) {
	d := deployed(t)
	var let []any
	for _, policy := range d.state.Of("AWS::SNS::TopicPolicy") {
		list, _ := policy.Get("PolicyDocument.Statement").([]any)
		for _, each := range list {
			if s := (template.Resource{Properties: each.(map[string]any)}); s.Text("Effect") == "Allow" {
				let = append(let, map[string]any{
					"to": template.Texts(policy.Get("Topics")), "who": s.Text("Principal.Service"), "does": s.Text("Action"),
					"of":     template.Text(s.Get("Condition.StringEquals").(map[string]any)["aws:SourceAccount"]),
					"alarms": template.Text(s.Get("Condition.ArnLike").(map[string]any)["aws:SourceArn"]),
				})
			}
		}
	}
	same(t, "who may publish", let, []any{map[string]any{
		"to": []string{"${AlarmTopic}"}, "who": "cloudwatch.amazonaws.com", "does": "sns:Publish", "of": "${AWS::AccountId}",
		"alarms": "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:holdfast-*",
	}})
	for _, alarm := range d.workers.Of("AWS::CloudWatch::Alarm") {
		if !strings.HasPrefix(alarm.Text("AlarmName"), "holdfast-") {
			t.Errorf("the topic takes nothing from %s", alarm.Text("AlarmName"))
		}
	}
}

func TestATagNamesOneImageForEver(t *testing.T) {
	images := deployed(t).state.Resources["Images"]
	same(t, "tags", images.Text("ImageTagMutability"), "IMMUTABLE")
	same(t, "looked at for known holes", images.Get("ImageScanningConfiguration.ScanOnPush"), true)
	if policy := images.Text("LifecyclePolicy.LifecyclePolicyText"); !strings.Contains(policy, `"countType":"imageCountMoreThan","countNumber":10`) {
		t.Errorf("got %s, want ten images to go back to", policy)
	}
}

func TestTheBucketHasANameOfItsOwnUnlessOneIsGiven(t *testing.T) {
	want := s3blob.Bucket("holdfast") + "-${AWS::AccountId}-${AWS::Region}"
	d := deployed(t)
	same(t, "name", d.state.Resources["Blobs"].Text("BucketName"), want)
	same(t, "versioned", d.state.Resources["Blobs"].Text("VersioningConfiguration.Status"), "Enabled")
	for _, fn := range d.workers.Of("AWS::Lambda::Function") {
		same(t, fn.ID+" is told", fn.Text("Environment.Variables."+config.BucketVar), want)
	}
	same(t, "given", deployed(t, "bucket=my-own").state.Resources["Blobs"].Text("BucketName"), "my-own")
}
