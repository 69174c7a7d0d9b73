package stacks_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/cdk/access"
	"holdfast/pkg/config"
	"holdfast/pkg/dynamostore"
)

// operations is what the processes were seen to ask of AWS in whole runs on LocalStack: `make record` writes it.
const operations = "testdata/operations.jsonl"

// unseen is what processes may do and were not seen to, with the reason: "PROCESSES STATEMENT ACTION".
var unseen = map[string]string{
	"control,work Receive sqs:ReceiveMessage":     "Lambda's event source asks with the function's role",
	"control,work Receive sqs:DeleteMessage":      "Lambda's event source asks with the function's role",
	"control,work Receive sqs:GetQueueAttributes": "Lambda's event source asks with the function's role",

	"control,work,reap,api,workd MissingBlobs s3:ListBucket": "nobody asks for it; without it an object that is not there is refused and not missed",

	"control,work,reap,api Log logs:CreateLogStream": "Lambda asks for it",
	"control,work,reap,api Log logs:PutLogEvents":    "Lambda asks for it",

	"workd Protect ecs:GetTaskProtection":    "the agent of a task asks for it, and there is none on LocalStack",
	"workd Protect ecs:UpdateTaskProtection": "the agent of a task asks for it, and there is none on LocalStack",

	"work,workd Rows dynamodb:DeleteItem":       "a breaker that closes again: dynamostore.Store.CloseBreaker",
	"workd Checkpoints dynamodb:UpdateItem":     "a stored reply that is used again near its end: dynamostore.Store.refresh",
	"work Blobs s3:PutObject":                   "an answer that is too large for a row: call.Caller",
	"workd Receive sqs:ChangeMessageVisibility": "a delivery that comes too early, or whose task another worker holds: pipeline.Queue.Delay",
	"reap Checkpoints dynamodb:BatchGetItem":    "replies of a job that is open for weeks are kept: reap.Reaper.keepOpen",
	"reap Checkpoints dynamodb:UpdateItem":      "replies of a job that is open for weeks are kept: reap.Reaper.keepOpen",
	"reap Blobs s3:GetObject":                   "replies of a job that is open for weeks are kept: reap.Reaper.keepOpen",
	"reap Checkpoints dynamodb:BatchWriteItem":  "what a job left gets its end, an hour after the job's: dynamostore.Store.Mark",
}

// reasonsUnseen are the same, each process apart: "PROCESS STATEMENT ACTION".
func reasonsUnseen() map[string]string {
	all := map[string]string{}
	for entry, reason := range unseen {
		processes, what, _ := strings.Cut(entry, " ")
		for _, process := range strings.Split(processes, ",") {
			all[process+" "+what] = reason
		}
	}
	return all
}

func recorded(t *testing.T) *access.Record {
	t.Helper()
	var record access.Record
	if err := record.Load(operations); err != nil {
		t.Fatal(err)
	}
	return &record
}

// seen is what a process asked, in the names of the deployment "holdfast".
func seen(record *access.Record, process config.Process) (all []access.Request) {
	for _, q := range record.Of(string(process)) {
		q.Resource = strings.ReplaceAll(q.Resource, "STACK-", "holdfast-")
		all = append(all, q)
	}
	return all
}

// everybody is a deployment with all processes, whose bucket has the name that it had when they were seen.
func everybody(t *testing.T) deployment {
	t.Helper()
	return deployed(t, "workers=both", "image=v1", "bucket=holdfast-blobs")
}

// policyOf is what a process may do.
func policyOf(t *testing.T, d deployment, process config.Process) []access.Statement {
	t.Helper()
	for _, role := range d.workers.Of("AWS::IAM::Role") {
		if strings.HasPrefix(role.Text("Description"), "What "+string(process)+" of") {
			return access.Statements(d.workers, role.ID)
		}
	}
	t.Fatalf("%s has no role", process)
	return nil
}

func TestEveryRoleAllowsWhatItsProcessWasSeenToAsk(t *testing.T) {
	record, d := recorded(t), everybody(t)
	for _, process := range config.Processes() {
		asked := seen(record, process)
		if len(asked) == 0 {
			t.Errorf("nothing was seen of %s: make record", process)
		}
		policy := policyOf(t, d, process)
		for _, q := range asked {
			if allowed, why := access.Allows(policy, q); !allowed {
				t.Errorf("%s asked %+v: %s", process, q, why)
			}
		}
	}
}

func TestNoRoleAllowsWhatItsProcessNeverAsks(t *testing.T) {
	record, d := recorded(t), everybody(t)
	reasons, needed := reasonsUnseen(), map[string]bool{}
	for _, process := range config.Processes() {
		asked := seen(record, process)
		for _, statement := range policyOf(t, d, process) {
			if statement.Deny {
				continue
			}
			for _, action := range statement.Actions {
				one := statement
				one.Actions = []string{action}
				if slices.ContainsFunc(asked, func(q access.Request) bool {
					allowed, _ := access.Allows([]access.Statement{one}, q)
					return allowed
				}) {
					continue
				}
				entry := string(process) + " " + statement.ID + " " + action
				if needed[entry] = true; reasons[entry] == "" {
					t.Errorf("%s may %s on %v (%s) and was never seen to", process, action, statement.Resources, statement.ID)
				}
			}
		}
	}
	for entry := range reasons {
		if !needed[entry] {
			t.Errorf("%q is said to be unseen: it is seen now, or nobody may do it", entry)
		}
	}
}

func TestWhoeverWorksCannotCreateAJob(t *testing.T) {
	record, d := recorded(t), everybody(t)
	submits := 0
	for _, q := range seen(record, config.API) {
		if q.Action != "dynamodb:PutItem" || !slices.Contains(q.Keys, dynamostore.TenantPartitions) {
			continue
		}
		submits++
		for _, process := range []config.Process{config.Control, config.Work, config.Reap, config.Workd} {
			if allowed, why := access.Allows(policyOf(t, d, process), q); allowed {
				t.Errorf("%s may put a job into a tenant's list: %s", process, why)
			}
		}
	}
	if submits == 0 {
		t.Error("no submit of the api was seen: make record")
	}
}

func TestTheAPICannotClaim(t *testing.T) {
	record, d := recorded(t), everybody(t)
	claims := 0
	for _, process := range []config.Process{config.Work, config.Control, config.Workd} {
		for _, q := range seen(record, process) {
			if q.Action != "dynamodb:UpdateItem" || !slices.Contains(q.Attributes, dynamostore.ClaimKey) {
				continue
			}
			claims++
			if allowed, why := access.Allows(policyOf(t, d, config.API), q); allowed {
				t.Errorf("the api may claim: %s", why)
			}
		}
	}
	if claims == 0 {
		t.Error("no claim was seen: make record")
	}
	for _, queue := range []string{"holdfast-control", "holdfast-work"} {
		if allowed, why := access.Allows(policyOf(t, d, config.API), access.Request{Action: "sqs:ReceiveMessage", Resource: queue}); allowed {
			t.Errorf("the api may take from %s: %s", queue, why)
		}
		if allowed, why := access.Allows(policyOf(t, d, config.API), access.Request{Action: "sqs:SendMessage", Resource: queue + "-dead"}); allowed {
			t.Errorf("the api may write dead letters of %s: %s", queue, why)
		}
	}
}
