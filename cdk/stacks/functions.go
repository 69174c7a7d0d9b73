package stacks

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
)

// memory of a function, in MB; a function's share of a CPU grows with it.
var memory = map[config.Process]int{
	config.Control: 1769, // one whole CPU: a PDF is parsed in a sandbox of 384 MB, which is compiled first
	config.Work:    512,
	config.Reap:    256,
	config.API:     1024, // a submit holds the document that was uploaded, of 64 MB; a report all of a job's journals
}

func (w *workers) architecture() awslambda.Architecture {
	if w.Arch == "amd64" {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

// function makes a function of its zip, with a role and a log group of its own.
func (w *workers) function(process config.Process) awslambda.Function {
	name := config.FunctionName(w.Stack, process)
	logs := w.logGroup(construct(process)+"Log", "/aws/lambda/"+name)
	role := w.role(process, "lambda.amazonaws.com")
	allow(role, w.logging(logs))
	return awslambda.NewFunction(w.stack, text(construct(process)), &awslambda.FunctionProps{
		FunctionName: text(name),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: w.architecture(),
		Handler:      text("bootstrap"),
		Code:         awslambda.Code_FromAsset(text(w.zip(process)), nil),
		Timeout:      duration(config.Timeout(process, w.Policy)),
		MemorySize:   number(memory[process]),
		Environment:  w.environment(process),
		Role:         role,
		LogGroup:     logs,
	})
}

// construct is a process's name in the tree of constructs.
func construct(process config.Process) string {
	return strings.ToUpper(string(process[:1])) + string(process[1:])
}

// logGroup keeps a log for so many days and no longer.
func (w *workers) logGroup(id, name string) awslogs.LogGroup {
	group := awslogs.NewLogGroup(w.stack, text(id), &awslogs.LogGroupProps{
		LogGroupName: text(name), RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	group.Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(number(w.LogDays))
	return group
}

// addConsumers makes the functions behind the two queues. maxReceiveCount is Policy.MaxReceives, and visibility six
// times the timeout; what fails is told record by record, so that a good one is never delivered again for a bad one.
func (w *workers) addConsumers() {
	w.addConsumer(pipeline.ControlQueue, config.Control)
	w.addConsumer(pipeline.WorkQueue, config.Work)
}

func (w *workers) addConsumer(queue string, process config.Process) {
	source, _ := sqsqueue.Names(w.Stack, queue)
	awslambda.NewEventSourceMapping(w.stack, text(construct(process)+"Source"), &awslambda.EventSourceMappingProps{
		Target:                  w.function(process),
		EventSourceArn:          text(arn(w.stack, "sqs", source)),
		BatchSize:               number(config.Batch(process)),
		MaxConcurrency:          number(w.concurrency(process)),
		ReportBatchItemFailures: yes(true),
	})
}

// What sizes the number of invocations at once: estimates, none of them a bound. The limiter holds the quota.
const (
	callSeconds   = 5    // of one call
	tokensPerCall = 4000 // of one call, the answer included
)

// The bounds that AWS sets to an event source's concurrency.
const (
	leastConcurrency = 2
	mostConcurrency  = 1000
)

// controlShare of the claims of a job are splits and finalizes: there is one of each.
const controlShare = 20

// concurrency is how many invocations there may be at once: as many as the quota can feed, and no more than may hold
// claims of one job. It is that of the event source and not of the function, so what is over it waits in the queue and
// is not throttled into the dead-letter queue.
func (w *workers) concurrency(process config.Process) int {
	most := w.Policy.MaxJobClaims
	if process == config.Control {
		most /= controlShare
	} else if w.Quota > 0 {
		perInvocation := w.InFlight * 60 / callSeconds * tokensPerCall // tokens a minute
		most = min(most, (w.Quota+perInvocation-1)/perInvocation)
	}
	return min(max(most, leastConcurrency), mostConcurrency)
}
