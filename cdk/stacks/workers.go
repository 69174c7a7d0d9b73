package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"

	"holdfast/pkg/config"
)

// NewWorkers is the stack with all that can be thrown away and made again: who works, who asks, who watches. It finds
// the state by its names, so it can be removed and deployed anew beside it, at this version or another.
func NewWorkers(scope constructs.Construct, s Settings) awscdk.Stack {
	stack := awscdk.NewStack(scope, text("Workers"), &awscdk.StackProps{
		StackName:   text(s.Stack + "-workers"),
		Description: text("Holdfast " + s.Stack + ": functions, tasks, API, alarms. Nothing is lost with it."),
	})
	w := &workers{stack: stack, Settings: s}
	w.addReaper()
	w.addAPI()
	if s.Lambda() {
		w.addConsumers()
	}
	if s.Fargate() {
		w.addService()
	}
	output(stack, "WorkdEnvironment", stack.ToJsonString(w.environment(config.Workd), nil)) // of a workd that runs elsewhere
	w.addAlarms()
	w.addDashboard()
	return stack
}

// workers is the stack while it is made.
type workers struct {
	Settings
	stack awscdk.Stack
}

// environment is what a process of the deployment is told.
func (w *workers) environment(process config.Process) *map[string]*string {
	env := map[string]*string{}
	for name, value := range w.Settings.environment(process, bucketName(w.stack, w.Settings)) {
		env[name] = text(value)
	}
	return &env
}
