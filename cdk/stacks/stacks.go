package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// NewApp is an app with the decisions of the CDK's that the stacks rest on; outdir "" is where the CDK says.
func NewApp(outdir string) awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{Outdir: optional(outdir), PostCliContext: &map[string]any{
		"@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": true, // access by policy, not by lists
		"@aws-cdk/core:validateAgainstDefaultRules":       true, // what the CDK's own look at the template finds is an error
	}})
}

// New is both stacks of a deployment. Workers is deployed after State, and removed before it.
func New(scope constructs.Construct, s Settings) (state, workers awscdk.Stack) {
	state, workers = NewState(scope, s), NewWorkers(scope, s)
	workers.AddStackDependency(state, text("it finds the state by its names"))
	for _, stack := range []awscdk.Stack{state, workers} {
		awscdk.Tags_Of(stack).Add(text("holdfast:stack"), text(s.Stack), &awscdk.TagProps{
			ExcludeResourceTypes: texts("AWS::CloudWatch::Dashboard", "AWS::ApplicationAutoScaling::ScalableTarget"), // not everywhere do they take tags
		})
	}
	return state, workers
}
