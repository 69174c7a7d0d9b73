package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"

	"holdfast/pkg/config"
	"holdfast/pkg/s3blob"
)

// bucketName is the bucket's: everybody's buckets share one space of names, so that of a deployment on AWS has its
// account and region in it.
func bucketName(stack awscdk.Stack, s Settings) string {
	if s.Bucket != "" {
		return s.Bucket
	}
	return s3blob.Bucket(s.Stack) + "-" + *stack.Account() + "-" + *stack.Region()
}

// alarmName is that of an alarm by its id.
func alarmName(s Settings, id string) string { return s.Stack + "-" + id }

func topicName(s Settings) string      { return s.Stack + "-alarms" }
func repositoryName(s Settings) string { return config.FunctionName(s.Stack, config.Workd) }

// keptImages is how many images stay to roll back to.
const keptImages = 10
