package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"holdfast/pkg/config"
)

// addReaper starts the reaper every minute, whoever works: tasks that are all gone reap nothing. A sweep that was not
// started in time is not made up for: the next one sees what it would have seen.
func (w *workers) addReaper() {
	fn := w.function(config.Reap)
	awslambda.NewCfnEventInvokeConfig(w.stack, text("ReapOnce"), &awslambda.CfnEventInvokeConfigProps{
		FunctionName: fn.FunctionName(), Qualifier: text("$LATEST"),
		MaximumRetryAttempts: number(0), MaximumEventAgeInSeconds: seconds(config.ReapEvery),
	})
	awsevents.NewRule(w.stack, text("ReapEvery"), &awsevents.RuleProps{
		RuleName: text(config.FunctionName(w.Stack, config.Reap)),
		Schedule: awsevents.Schedule_Rate(duration(config.ReapEvery)),
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(fn, &awseventstargets.LambdaFunctionProps{
			RetryAttempts: jsii.Number(0), MaxEventAge: duration(config.ReapEvery),
		})},
	})
}
