package stacks

import (
	"slices"
	"strings"

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
	all := join(w.rows(process), w.blobs(process), w.sender(process))
	switch process {
	case config.Control:
		return join(all, w.source(pipeline.ControlQueue), w.createsNoJob())
	case config.Work:
		return join(all, w.source(pipeline.WorkQueue), w.key(), w.createsNoJob())
	case config.Workd:
		return join(all, w.receiver(pipeline.ControlQueue, pipeline.WorkQueue), w.due(), w.key(), w.protecting(), w.createsNoJob())
	case config.Reap:
		return join(all, w.due(), w.createsNoJob())
	case config.API:
		return join(all, w.letters(), w.claimsNothing())
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
func partitions(beginnings ...string) map[string]any {
	var prefixes []string
	for _, beginning := range beginnings {
		prefixes = append(prefixes, beginning+"*")
	}
	return map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": prefixes}}
}

// tableAccess is what a process does with a table, and with rows of which partitions.
type tableAccess struct {
	actions    string // of DynamoDB
	partitions []string
}

// Partitions by what they are of.
var (
	ofJobs          = []string{dynamostore.JobPartitions}
	ofJobsAndLimits = []string{dynamostore.JobPartitions, dynamostore.LimitPartitions}
	ofReplies       = []string{dynamostore.JobPartitions, dynamostore.ReplyPartitions}
	ofTenants       = []string{dynamostore.JobPartitions, dynamostore.TenantPartitions, dynamostore.LimitPartitions}
)

// access is what each process does with the two tables.
var access = map[config.Process]struct{ rows, checkpoints tableAccess }{
	config.Control: {
		rows:        tableAccess{"GetItem PutItem Query UpdateItem", ofJobs},
		checkpoints: tableAccess{"GetItem PutItem Query", ofJobs},
	},
	config.Work: {
		rows:        tableAccess{"DeleteItem GetItem PutItem Query UpdateItem", ofJobsAndLimits},
		checkpoints: tableAccess{"BatchGetItem GetItem PutItem Query UpdateItem", ofReplies},
	},
	config.Workd: {
		rows:        tableAccess{"BatchGetItem DeleteItem GetItem PutItem Query UpdateItem", ofJobsAndLimits},
		checkpoints: tableAccess{"BatchGetItem BatchWriteItem GetItem PutItem Query UpdateItem", ofReplies},
	},
	config.Reap: {
		rows:        tableAccess{"BatchGetItem GetItem PutItem Query UpdateItem", ofJobs},
		checkpoints: tableAccess{"BatchGetItem BatchWriteItem GetItem PutItem Query UpdateItem", ofReplies},
	},
	config.API: {
		rows:        tableAccess{"BatchGetItem GetItem PutItem Query UpdateItem", ofTenants},
		checkpoints: tableAccess{"BatchGetItem BatchWriteItem GetItem PutItem Query", ofReplies},
	},
}

func (w *workers) rows(process config.Process) []statement {
	rows, checkpoints := w.tables()
	of := access[process]
	return []statement{of.rows.on("Rows", rows), of.checkpoints.on("Checkpoints", checkpoints)}
}

func (a tableAccess) on(id, table string) statement {
	s := statement{id: id, resources: []string{table}}
	for _, action := range strings.Fields(a.actions) {
		s.actions = append(s.actions, "dynamodb:"+action)
	}
	s.conditions = partitions(a.partitions...)
	return s
}

// letters lets somebody look at dead letters: they are received, and given back.
func (w *workers) letters() []statement {
	_, dead := w.queueARNs(queues...)
	return []statement{{id: "LookAtLetters", actions: []string{"sqs:ChangeMessageVisibility", "sqs:ReceiveMessage"}, resources: dead}}
}

// createsNoJob: a job begins in one transaction with the entry in its tenant's list, which nobody who works can write.
func (w *workers) createsNoJob() []statement {
	rows, _ := w.tables()
	return []statement{{
		id: "CreatesNoJob", deny: true, actions: []string{"dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, resources: []string{rows},
		conditions: map[string]any{"ForAnyValue:StringLike": map[string]any{"dynamodb:LeadingKeys": []string{dynamostore.TenantPartitions + "*"}}},
	}}
}

// claimsNothing: a claim is an update that names who claims.
func (w *workers) claimsNothing() []statement {
	rows, _ := w.tables()
	return []statement{{
		id: "ClaimsNothing", deny: true, actions: []string{"dynamodb:UpdateItem"}, resources: []string{rows},
		conditions: map[string]any{"ForAnyValue:StringEquals": map[string]any{"dynamodb:Attributes": []string{dynamostore.ClaimKey}}},
	}}
}

// due lets a reaper find rows that stalled.
func (w *workers) due() []statement {
	rows, _ := w.tables()
	return []statement{{id: "Due", actions: []string{"dynamodb:Query"}, resources: []string{rows + "/index/" + dynamostore.DueIndex}}}
}

// blobs: whoever asks for an object that is not there is told so only if he may list. The reaper writes none.
func (w *workers) blobs(process config.Process) []statement {
	actions := []string{"s3:GetObject", "s3:PutObject"}
	if process == config.Reap {
		actions = actions[:1]
	}
	bucket := "arn:" + *w.stack.Partition() + ":s3:::" + bucketName(w.stack, w.Settings)
	return []statement{
		{id: "Blobs", actions: actions, resources: []string{bucket + "/*"}},
		{id: "MissingBlobs", actions: []string{"s3:ListBucket"}, resources: []string{bucket}},
	}
}

// queueARNs are those of the queues that deliver, and of their dead-letter queues.
func (w *workers) queueARNs(of ...string) (live, dead []string) {
	for _, queue := range of {
		name, letters := sqsqueue.Names(w.Stack, queue)
		live, dead = append(live, arn(w.stack, "sqs", name)), append(dead, arn(w.stack, "sqs", letters))
	}
	return live, dead
}

// receiver takes from queues.
func (w *workers) receiver(of ...string) []statement {
	live, _ := w.queueARNs(of...)
	return []statement{{id: "Receive", actions: []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}, resources: live}}
}

// source takes from a queue as Lambda does, which asks with the function's role.
func (w *workers) source(queue string) []statement {
	all := w.receiver(queue)
	all[0].actions = append(all[0].actions, "sqs:GetQueueAttributes")
	return all
}

// sender rings, and sends dead letters, which the api never does.
func (w *workers) sender(process config.Process) []statement {
	live, dead := w.queueARNs(queues...)
	all := append(slices.Clone(live), dead...)
	to := all
	if process == config.API {
		to = live
	}
	return []statement{{id: "FindQueues", actions: []string{"sqs:GetQueueUrl"}, resources: all}, {id: "Send", actions: []string{"sqs:SendMessage"}, resources: to}}
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
