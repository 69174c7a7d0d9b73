package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// New is both stacks of a deployment. Workers is deployed after State, and removed before it.
func New(scope constructs.Construct, s Settings) (state, workers awscdk.Stack) {
	state, workers = NewState(scope, s), NewWorkers(scope, s)
	workers.AddDependency(state, text("it finds the state by its names"))
	for _, stack := range []awscdk.Stack{state, workers} {
		awscdk.Tags_Of(stack).Add(text("holdfast:stack"), text(s.Stack), nil)
	}
	return state, workers
}
