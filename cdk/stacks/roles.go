package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"holdfast/pkg/config"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
)

// role is that of one process: what it does, on the resources of this deployment, and nothing else.
func (w *workers) role(process config.Process, service string) awsiam.Role {
	role := awsiam.NewRole(w.stack, text(construct(process)+"Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(text(service), nil),
		Description: text("What " + string(process) + " of Holdfast " + w.Stack + " may do."),
	})
	for _, statement := range w.statements(process) {
		allow(role, statement)
	}
	excuseWildcard(role, `.*:s3:::.*\/\*`, whyObjects)
	return role
}

// statement is one of a policy. Everything in it has a reason to be there.
type statement struct {
	id         string
	deny       bool
	actions    []string
	resources  []string
	conditions map[string]any
}

func allow(role awsiam.Role, s statement) {
	props := &awsiam.PolicyStatementProps{Sid: text(s.id), Actions: texts(s.actions...), Resources: texts(s.resources...)}
	if s.deny {
		props.Effect = awsiam.Effect_DENY
	}
	if s.conditions != nil {
		props.Conditions = &s.conditions
	}
	role.AddToPolicy(awsiam.NewPolicyStatement(props))
}

// statements of each process.
func (w *workers) statements(process config.Process) []statement {
	both := []string{pipeline.ControlQueue, pipeline.WorkQueue}
	switch process {
	case config.Control:
		return join(w.engine(), w.receiver(pipeline.ControlQueue), w.sender(both...), []statement{w.createsNoJob()})
	case config.Work:
		return join(w.engine(), w.receiver(pipeline.WorkQueue), w.sender(both...), w.key(), []statement{w.createsNoJob()})
	case config.Workd:
		return join(w.engine(), w.receiver(both...), w.sender(both...), w.sweeper(), w.key(), w.protecting(), []statement{w.createsNoJob()})
	case config.Reap:
		return join(w.engine(), w.sender(both...), w.sweeper(), []statement{w.createsNoJob()})
	case config.API:
		return join(w.desk(), w.sender(both...), []statement{w.claimsNothing()})
	}
	panic("stacks: nobody has said what " + string(process) + " may do")
}

func join(lists ...[]statement) (all []statement) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func (w *workers) tables() (rows, checkpoints string) {
	r, c := dynamostore.Tables(w.Stack)
	return arnOf(w.stack, "dynamodb", "table", "/", r.Name), arnOf(w.stack, "dynamodb", "table", "/", c.Name)
}

// partitions lets a statement reach only rows whose partition key begins so.
func partitions(prefixes ...string) map[string]any {
	return map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": prefixes}}
}

var readRows = []string{"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}

// engine is what works on tasks: it changes the rows of jobs and of models' limits, never a tenant's list of jobs, and
// keeps what belongs to them.
func (w *workers) engine() []statement {
	rows, checkpoints := w.tables()
	return append([]statement{
		{id: "Rows", actions: append([]string{"dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"}, readRows...),
			resources: []string{rows}, conditions: partitions(dynamostore.JobPartitions, dynamostore.LimitPartitions)},
		{id: "Checkpoints", actions: append([]string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"}, readRows...), resources: []string{checkpoints}},
	}, w.blobs()...)
}

// desk is what answers people: it submits, steers and reads.
func (w *workers) desk() []statement {
	rows, checkpoints := w.tables()
	statements := []statement{
		{id: "Rows", actions: append([]string{"dynamodb:PutItem", "dynamodb:UpdateItem"}, readRows...), resources: []string{rows}},
		{id: "Checkpoints", actions: append([]string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"}, readRows...), resources: []string{checkpoints}},
	}
	var dead []string
	for _, queue := range queues {
		_, name := sqsqueue.Names(w.Stack, queue)
		dead = append(dead, arn(w.stack, "sqs", name))
	}
	statements = append(statements, statement{id: "LookAtLetters", actions: []string{"sqs:ChangeMessageVisibility", "sqs:ReceiveMessage"}, resources: dead})
	return append(statements, w.blobs()...)
}

// createsNoJob: a job begins with a row that has an epoch, in a transaction with its tenant's list. Neither can be
// written by those who work.
func (w *workers) createsNoJob() statement {
	rows, _ := w.tables()
	return statement{
		id: "CreatesNoJob", deny: true, actions: []string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"}, resources: []string{rows},
		conditions: map[string]any{"ForAnyValue:StringLike": map[string]any{"dynamodb:LeadingKeys": []string{dynamostore.TenantPartitions + "*"}}},
	}
}

// claimsNothing: a claim is an update that names who claims.
func (w *workers) claimsNothing() statement {
	rows, _ := w.tables()
	return statement{
		id: "ClaimsNothing", deny: true, actions: []string{"dynamodb:UpdateItem"}, resources: []string{rows},
		conditions: map[string]any{"ForAnyValue:StringEquals": map[string]any{"dynamodb:Attributes": []string{dynamostore.ClaimKey}}},
	}
}

// sweeper is what finds rows that stalled.
func (w *workers) sweeper() []statement {
	rows, _ := w.tables()
	return []statement{{id: "Due", actions: []string{"dynamodb:Query"}, resources: []string{rows + "/index/" + dynamostore.DueIndex}}}
}

// blobs: whoever asks for an object that is not there is told so only if he may list.
func (w *workers) blobs() []statement {
	bucket := "arn:" + *w.stack.Partition() + ":s3:::" + bucketName(w.stack, w.Settings)
	return []statement{
		{id: "Blobs", actions: []string{"s3:GetObject", "s3:PutObject"}, resources: []string{bucket + "/*"}},
		{id: "MissingBlobs", actions: []string{"s3:ListBucket"}, resources: []string{bucket}},
	}
}

// receiver takes from queues.
func (w *workers) receiver(queues ...string) []statement {
	var live []string
	for _, queue := range queues {
		name, _ := sqsqueue.Names(w.Stack, queue)
		live = append(live, arn(w.stack, "sqs", name))
	}
	return []statement{{
		id: "Receive", resources: live,
		actions: []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"},
	}}
}

// sender rings, and sends dead letters.
func (w *workers) sender(queues ...string) []statement {
	var all []string
	for _, queue := range queues {
		name, dead := sqsqueue.Names(w.Stack, queue)
		all = append(all, arn(w.stack, "sqs", name), arn(w.stack, "sqs", dead))
	}
	return []statement{{id: "Send", actions: []string{"sqs:GetQueueUrl", "sqs:SendMessage"}, resources: all}}
}

// key lets whoever asks the model read its key, where there is one.
func (w *workers) key() []statement {
	if w.ModelKeySecret == "" {
		return nil
	}
	return []statement{{id: "ModelKey", actions: []string{"secretsmanager:GetSecretValue"}, resources: []string{w.ModelKeySecret}}}
}

// protecting lets a task say that it is working, so that nothing scales it in.
func (w *workers) protecting() []statement {
	return []statement{{
		id: "Protect", actions: []string{"ecs:GetTaskProtection", "ecs:UpdateTaskProtection"},
		resources: []string{arnOf(w.stack, "ecs", "task", "/", w.Stack+"/*")},
	}}
}

// logging writes into one log group.
func (w *workers) logging(group awslogs.LogGroup) statement {
	return statement{id: "Log", actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, resources: []string{*group.LogGroupArn()}}
}
