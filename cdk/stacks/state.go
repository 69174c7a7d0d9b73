package stacks

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecr"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"

	"holdfast/pkg/config"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
)

// NewState is the stack with all that must not be lost. Everything in it has a pinned logical id and a name by the
// deployment's rule, stays when the stack is removed, and is found by those who use it by that name: no other stack
// imports from it, so either can be changed alone.
func NewState(scope constructs.Construct, s Settings) awscdk.Stack {
	stack := awscdk.NewStack(scope, text("State"), &awscdk.StackProps{
		StackName:             text(s.Stack + "-state"),
		Description:           text("Holdfast " + s.Stack + ": tables, bucket, queues, topic. Kept when the stack is removed."),
		TerminationProtection: yes(!s.LocalStack()),
	})
	rows, checkpoints := dynamostore.Tables(s.Stack)
	newTable(stack, "PipelineTable", rows, s)
	newTable(stack, "CheckpointsTable", checkpoints, s)
	for _, queue := range queues {
		newQueue(stack, queue, s)
	}
	newBucket(stack, s)
	newTopic(stack, s)
	newRepository(stack, s)
	keep(stack)
	return stack
}

// keep leaves every resource where it is when the stack goes, what guards the data with the data. Only what a failed first
// deployment made goes with it: its names would be in the way of the next.
func keep(stack awscdk.Stack) {
	for _, c := range *stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		if resource, is := c.(awscdk.CfnResource); is {
			resource.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
		}
	}
}

// queues of a deployment.
var queues = []string{pipeline.ControlQueue, pipeline.WorkQueue}

// newTable makes a table as its package says. On demand: an idle deployment pays for what is stored, no more.
func newTable(stack awscdk.Stack, id string, t dynamostore.Table, s Settings) {
	table := awsdynamodb.NewTable(stack, text(id), &awsdynamodb.TableProps{
		TableName:    text(t.Name),
		PartitionKey: attribute(dynamostore.PartitionKey, awsdynamodb.AttributeType_STRING),
		SortKey:      attribute(dynamostore.SortKey, awsdynamodb.AttributeType_STRING),
		BillingMode:  awsdynamodb.BillingMode_PAY_PER_REQUEST,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: yes(true),
		},
		DeletionProtection:  yes(!s.LocalStack()),
		TimeToLiveAttribute: optional(t.TTL),
		RemovalPolicy:       awscdk.RemovalPolicy_RETAIN,
	})
	if t.Due {
		table.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
			IndexName:      text(dynamostore.DueIndex),
			PartitionKey:   attribute(dynamostore.DueShardKey, awsdynamodb.AttributeType_STRING),
			SortKey:        attribute(dynamostore.DueAtKey, awsdynamodb.AttributeType_NUMBER),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		})
	}
	pin(table, id)
	output(stack, id+"Name", table.TableName())
}

func attribute(name string, kind awsdynamodb.AttributeType) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: text(name), Type: kind}
}

// newQueue makes a queue and its dead-letter queue with the attributes that their package says.
func newQueue(stack awscdk.Stack, queue string, s Settings) {
	name, dead := sqsqueue.Names(s.Stack, queue)
	id := strings.ToUpper(queue[:1]) + queue[1:]
	letters := rawQueue(stack, id+"DeadQueue", dead, sqsqueue.DeadAttributes(s.Policy))
	live := rawQueue(stack, id+"Queue", name, sqsqueue.Attributes(s.Policy, *letters.AttrArn()))
	letters.SetRedriveAllowPolicy(map[string]any{"redrivePermission": "byQueue", "sourceQueueArns": []any{arn(stack, "sqs", name)}})
	output(stack, id+"QueueUrl", live.Ref())
	output(stack, id+"DeadQueueUrl", letters.Ref())
}

// rawQueue makes one queue from SQS attributes. Only requests over TLS are served.
func rawQueue(stack awscdk.Stack, id, name string, attributes map[string]string) awssqs.CfnQueue {
	props := &awssqs.CfnQueueProps{QueueName: text(name), SqsManagedSseEnabled: yes(true)}
	for attribute, value := range attributes {
		switch attribute {
		case "VisibilityTimeout":
			props.VisibilityTimeout = parsed(value)
		case "MessageRetentionPeriod":
			props.MessageRetentionPeriod = parsed(value)
		case "RedrivePolicy":
			props.RedrivePolicy = redrivePolicy(value)
		default:
			panic("stacks: queue " + name + " has the attribute " + attribute + ", which the template does not know: add it to rawQueue")
		}
	}
	queue := awssqs.NewCfnQueue(stack, text(id), props)
	queue.OverrideLogicalId(text(id))
	awssqs.NewCfnQueuePolicy(stack, text(id+"Tls"), &awssqs.CfnQueuePolicyProps{
		Queues:         &[]*string{queue.Ref()},
		PolicyDocument: tlsOnly("sqs:*", queue.AttrArn()),
	})
	return queue
}

func redrivePolicy(value string) any {
	var policy struct {
		Target   string `json:"deadLetterTargetArn"`
		Receives string `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(value), &policy); err != nil {
		panic("stacks: redrive policy " + value + ": " + err.Error())
	}
	return map[string]any{"deadLetterTargetArn": text(policy.Target), "maxReceiveCount": parsed(policy.Receives)}
}

func parsed(value string) *float64 {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		panic("stacks: " + value + " is no number: " + err.Error())
	}
	return &n
}

// restorable is for how many days the tables can be set back, by AWS's default. What a row of then names must be in the
// bucket for as long.
const restorable = 35

// newBucket makes the bucket of documents, definitions and results, and one for the log of its accesses. Objects have no
// end of their own: how long a job's blobs are of use only its row knows. Only those that are on their way have one.
func newBucket(stack awscdk.Stack, s Settings) {
	logs := awss3.NewBucket(stack, text("BlobsLog"), &awss3.BucketProps{
		Encryption: awss3.BucketEncryption_S3_MANAGED, BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		EnforceSSL: yes(true), ObjectOwnership: awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		LifecycleRules: &[]*awss3.LifecycleRule{{Expiration: days(s.LogDays)}},
		RemovalPolicy:  awscdk.RemovalPolicy_RETAIN,
	})
	pin(logs, "BlobsLog")
	rules := []*awss3.LifecycleRule{{
		NoncurrentVersionExpiration: days(restorable), AbortIncompleteMultipartUploadAfter: days(7), ExpiredObjectDeleteMarker: yes(true),
	}}
	for _, prefix := range []string{config.UploadPrefix, config.AnswerPrefix} {
		rules = append(rules, &awss3.LifecycleRule{Prefix: text(prefix), Expiration: days(1), NoncurrentVersionExpiration: days(1)})
	}
	bucket := awss3.NewBucket(stack, text("Blobs"), &awss3.BucketProps{
		BucketName: text(bucketName(stack, s)),
		Encryption: awss3.BucketEncryption_S3_MANAGED, BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		EnforceSSL: yes(true), ObjectOwnership: awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED, Versioned: yes(true),
		ServerAccessLogsBucket: logs, ServerAccessLogsPrefix: text("blobs/"),
		LifecycleRules: &rules,
		RemovalPolicy:  awscdk.RemovalPolicy_RETAIN,
	})
	pin(bucket, "Blobs")
	output(stack, "BlobsName", bucket.BucketName())
}

// newTopic makes the topic of the alarms. It says which alarm, nothing of a document, so it has no key of its own:
// CloudWatch cannot publish to a topic under AWS's key, and one's own costs a dollar a month. Its policy takes the place
// of the one that a topic has by itself, so it has to let the alarms in.
func newTopic(stack awscdk.Stack, s Settings) {
	topic := awssns.NewTopic(stack, text("AlarmTopic"), &awssns.TopicProps{TopicName: text(topicName(s)), EnforceSSL: yes(true)})
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: text("Alarms"), Actions: texts("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(text("cloudwatch.amazonaws.com"), nil)},
		Conditions: &map[string]any{
			"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()},
			"ArnLike":      map[string]any{"aws:SourceArn": arnOf(stack, "cloudwatch", "alarm", ":", alarmName(s, "*"))},
		},
	}))
	pin(topic, "AlarmTopic")
	output(stack, "AlarmTopicArn", topic.TopicArn())
}

// newRepository makes the repository of workd's images. A tag names one image for ever, so a rollback is a tag.
func newRepository(stack awscdk.Stack, s Settings) {
	repository := awsecr.NewRepository(stack, text("Images"), &awsecr.RepositoryProps{
		RepositoryName: text(repositoryName(s)), ImageTagMutability: awsecr.TagMutability_IMMUTABLE, ImageScanOnPush: yes(true),
		LifecycleRules: &[]*awsecr.LifecycleRule{{MaxImageCount: number(keptImages)}},
		RemovalPolicy:  awscdk.RemovalPolicy_RETAIN,
	})
	pin(repository, "Images")
	output(stack, "ImagesUri", repository.RepositoryUri())
}
