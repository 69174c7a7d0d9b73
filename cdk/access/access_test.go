package access_test

import (
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast/cdk/access"
	"holdfast/cdk/template"
)

func request(target, method, url string) *http.Request {
	r, err := http.NewRequest(method, "http://aws"+url, nil)
	if err != nil {
		panic(err)
	}
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20301201/us-east-1/s3/aws4_request")
	return r
}

func TestRequestsAreReadAsIAMSeesThem(t *testing.T) {
	for name, c := range map[string]struct {
		r    *http.Request
		body string
		want []access.Request
	}{
		"an update": {
			request("DynamoDB_20120810.UpdateItem", "POST", "/"),
			`{"TableName": "blue-pipeline", "Key": {"pk": {"S": "job#7"}, "sk": {"S": "task#1"}}, "ExpressionAttributeNames": {"#claim_id": "claim_id", "#body_3": "body_3"}}`,
			[]access.Request{{Action: "dynamodb:UpdateItem", Resource: "table/blue-pipeline", Keys: []string{"job#"}, Attributes: []string{"body_", "claim_id", "pk", "sk"}}},
		},
		"a query of an index": {
			request("DynamoDB_20120810.Query", "POST", "/"),
			`{"TableName": "blue-pipeline", "IndexName": "due", "KeyConditionExpression": "#s = :v0", "ExpressionAttributeNames": {"#s": "due_shard"}, "ExpressionAttributeValues": {":v0": {"S": "open"}}}`,
			[]access.Request{{Action: "dynamodb:Query", Resource: "table/blue-pipeline/index/due", Attributes: []string{"due_shard"}}},
		},
		"a query": {
			request("DynamoDB_20120810.Query", "POST", "/"),
			`{"TableName": "t", "KeyConditionExpression": "#pk = :v0 AND begins_with(#sk, :v1)", "ExpressionAttributeNames": {"#pk": "pk"}, "ExpressionAttributeValues": {":v0": {"S": "tenant#a"}, ":v1": {"S": "x"}}}`,
			[]access.Request{{Action: "dynamodb:Query", Resource: "table/t", Keys: []string{"tenant#"}, Attributes: []string{"pk"}}},
		},
		"each part of a transaction": {
			request("DynamoDB_20120810.TransactWriteItems", "POST", "/"),
			`{"TransactItems": [{"Put": {"TableName": "t", "Item": {"pk": {"S": "tenant#a"}}}}, {"Update": {"TableName": "t", "Key": {"pk": {"S": "job#7"}}}}]}`,
			[]access.Request{
				{Action: "dynamodb:PutItem", Resource: "table/t", Keys: []string{"tenant#"}, Attributes: []string{"pk"}},
				{Action: "dynamodb:UpdateItem", Resource: "table/t", Keys: []string{"job#"}, Attributes: []string{"pk"}},
			},
		},
		"a batch of reads": {
			request("DynamoDB_20120810.BatchGetItem", "POST", "/"), `{"RequestItems": {"t": {"Keys": [{"pk": {"S": "reply#1"}}]}}}`,
			[]access.Request{{Action: "dynamodb:BatchGetItem", Resource: "table/t", Keys: []string{"reply#"}, Attributes: []string{"pk"}}},
		},
		"a batch of writes": {
			request("DynamoDB_20120810.BatchWriteItem", "POST", "/"), `{"RequestItems": {"t": [{"PutRequest": {"Item": {"pk": {"S": "job#1"}}}}]}}`,
			[]access.Request{{Action: "dynamodb:BatchWriteItem", Resource: "table/t", Keys: []string{"job#"}, Attributes: []string{"pk"}}},
		},
		"a batch of messages is allowed as one": {
			request("AmazonSQS.SendMessageBatch", "POST", "/"), `{"QueueUrl": "http://127.0.0.1/queue/us-east-1/000000000000/blue-work"}`,
			[]access.Request{{Action: "sqs:SendMessage", Resource: "blue-work"}},
		},
		"the address of a queue": {
			request("AmazonSQS.GetQueueUrl", "POST", "/"), `{"QueueName": "blue-work-dead"}`,
			[]access.Request{{Action: "sqs:GetQueueUrl", Resource: "blue-work-dead"}},
		},
		"an object": {request("", "PUT", "/blue-blobs/documents/1"), "", []access.Request{{Action: "s3:PutObject", Resource: "blue-blobs/*"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := access.Read(c.r, []byte(c.body))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
	r := request("", "POST", "/")
	r.Header.Del("Authorization")
	if _, err := access.Read(r, nil); err == nil {
		t.Error("what is not known went by unseen")
	}
}

func TestARecordKeepsWhatIsTheSameToIAMOnce(t *testing.T) {
	var record access.Record
	q := access.Request{Action: "dynamodb:UpdateItem", Resource: "table/blue-pipeline", Keys: []string{"job#"}}
	for _, attribute := range []string{"b", "a", "b"} {
		q.Attributes = []string{attribute}
		record.Add("work", "blue", q)
	}
	path := filepath.Join(t.TempDir(), "seen.jsonl")
	if err := record.Save(path); err != nil {
		t.Fatal(err)
	}
	var again access.Record
	if err := again.Load(path); err != nil {
		t.Fatal(err)
	}
	q.Attributes, q.Resource = []string{"a", "b"}, "table/STACK-pipeline"
	if got := again.Of("work"); !reflect.DeepEqual(got, []access.Request{q}) {
		t.Errorf("got %+v, want %+v", got, q)
	}
}

const role = `{"Resources": {"P": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Role"}], "PolicyDocument": {"Statement": [
  {"Sid": "Rows", "Effect": "Allow", "Action": ["dynamodb:PutItem", "dynamodb:UpdateItem"],
   "Resource": {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":dynamodb:", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}, ":table/t"]]},
   "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["job#*"]}}},
  {"Sid": "Blobs", "Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b-${AWS::AccountId}/*"},
  {"Sid": "ClaimsNothing", "Effect": "Deny", "Action": "dynamodb:UpdateItem", "Resource": "*",
   "Condition": {"ForAnyValue:StringEquals": {"dynamodb:Attributes": "claim_id"}}}]}}}}}`

func TestAllows(t *testing.T) {
	parsed, err := template.Parse([]byte(role))
	if err != nil {
		t.Fatal(err)
	}
	policy := access.Statements(parsed, "Role")
	if len(policy) != 3 || len(access.Statements(parsed, "Other")) != 0 {
		t.Fatalf("got %+v", policy)
	}
	for name, c := range map[string]struct {
		q    access.Request
		want bool
		why  string
	}{
		"what is named":                        {access.Request{Action: "dynamodb:PutItem", Resource: "table/t", Keys: []string{"job#"}}, true, "Rows"},
		"another action":                       {access.Request{Action: "dynamodb:DeleteItem", Resource: "table/t", Keys: []string{"job#"}}, false, "no statement"},
		"another table":                        {access.Request{Action: "dynamodb:PutItem", Resource: "table/t2", Keys: []string{"job#"}}, false, "no statement"},
		"another partition":                    {access.Request{Action: "dynamodb:PutItem", Resource: "table/t", Keys: []string{"job#", "tenant#"}}, false, "no statement"},
		"a wildcard, and a reference":          {access.Request{Action: "s3:GetObject", Resource: "b-12/*"}, true, "Blobs"},
		"what is denied, though it is allowed": {access.Request{Action: "dynamodb:UpdateItem", Resource: "table/t", Keys: []string{"job#"}, Attributes: []string{"claim_id", "x"}}, false, "ClaimsNothing"},
		"beside what is denied":                {access.Request{Action: "dynamodb:UpdateItem", Resource: "table/t", Keys: []string{"job#"}, Attributes: []string{"x"}}, true, "Rows"},
	} {
		if got, why := access.Allows(policy, c.q); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: got %v, %s; want %v, %s", name, got, why, c.want, c.why)
		}
	}
}
