package access

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Request is what IAM sees of one.
type Request struct {
	Action     string   `json:"action"`
	Resource   string   `json:"resource"`             // last part of its ARN: table/NAME, table/NAME/index/NAME, a queue's name, BUCKET or BUCKET/*
	Keys       []string `json:"keys,omitempty"`       // partition keys, up to their first #
	Attributes []string `json:"attributes,omitempty"` // that are written or spoken of; up to their first # or _
}

// Read is what a request to a service of AWS asks for; none is an error: whoever sees one must learn of it.
func Read(r *http.Request, body []byte) ([]Request, error) {
	service, operation, is := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case is && strings.HasPrefix(service, "DynamoDB"):
		return readDynamoDB(operation, body)
	case is && service == "AmazonSQS":
		return readSQS(operation, body)
	case is && strings.EqualFold(service, "secretsmanager"):
		return []Request{{Action: "secretsmanager:" + operation, Resource: "secret"}}, nil
	case !is && strings.Contains(r.Header.Get("Authorization"), "/s3/aws4_request"), r.URL.Query().Get("X-Amz-Algorithm") != "":
		return readS3(r)
	}
	return nil, fmt.Errorf("%s %s (target %q) is of no service that is known here", r.Method, r.URL.Path, r.Header.Get("X-Amz-Target"))
}

func readSQS(operation string, body []byte) ([]Request, error) {
	var in struct{ QueueUrl, QueueName string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("sqs %s: %w", operation, err)
	}
	queue := in.QueueName
	if queue == "" {
		queue = path.Base(in.QueueUrl)
	}
	return []Request{{Action: "sqs:" + strings.TrimSuffix(operation, "Batch"), Resource: queue}}, nil
}

func readS3(r *http.Request) ([]Request, error) {
	bucket, key, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if key == "" {
		return nil, fmt.Errorf("s3: %s %s is about a bucket, not an object", r.Method, r.URL.Path)
	}
	action, known := map[string]string{http.MethodGet: "s3:GetObject", http.MethodHead: "s3:GetObject", http.MethodPut: "s3:PutObject", http.MethodDelete: "s3:DeleteObject"}[r.Method]
	if !known {
		return nil, fmt.Errorf("s3: %s %s", r.Method, r.URL.Path)
	}
	return []Request{{Action: action, Resource: bucket + "/*"}}, nil
}

// The parts of DynamoDB's requests.
type (
	value map[string]any
	row   map[string]value
	one   struct {
		TableName                 string
		IndexName                 string
		Key, Item                 row
		KeyConditionExpression    string
		ExpressionAttributeNames  map[string]string
		ExpressionAttributeValues row
	}
)

func readDynamoDB(operation string, body []byte) ([]Request, error) {
	var in struct {
		one
		RequestItems  json.RawMessage
		TransactItems []map[string]one
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("dynamodb %s: %w", operation, err)
	}
	switch operation {
	case "BatchGetItem", "BatchWriteItem":
		return readBatch(operation, in.RequestItems)
	case "TransactWriteItems", "TransactGetItems": // IAM asks for each part alone
		var all []Request
		for _, parts := range in.TransactItems {
			for kind, part := range parts {
				action := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "Get": "GetItem", "ConditionCheck": "ConditionCheckItem"}[kind]
				all = append(all, part.request(action))
			}
		}
		return all, nil
	}
	return []Request{in.request(operation)}, nil
}

func readBatch(operation string, items json.RawMessage) (all []Request, err error) {
	var writes map[string][]struct {
		PutRequest    *struct{ Item row }
		DeleteRequest *struct{ Key row }
	}
	var reads map[string]struct{ Keys []row }
	if operation == "BatchGetItem" {
		err = json.Unmarshal(items, &reads)
	} else {
		err = json.Unmarshal(items, &writes)
	}
	for table, in := range reads {
		for _, key := range in.Keys {
			all = append(all, one{TableName: table, Key: key}.request(operation))
		}
	}
	for table, in := range writes {
		for _, write := range in {
			if write.PutRequest != nil {
				all = append(all, one{TableName: table, Item: write.PutRequest.Item}.request(operation))
			}
			if write.DeleteRequest != nil {
				all = append(all, one{TableName: table, Key: write.DeleteRequest.Key}.request(operation))
			}
		}
	}
	return all, err
}

var equality = regexp.MustCompile(`(#?\w+)\s*=\s*(:\w+)`)

func (o one) request(action string) Request {
	r := Request{Action: "dynamodb:" + action, Resource: "table/" + path.Base(o.TableName)}
	if o.IndexName != "" {
		r.Resource += "/index/" + o.IndexName
	}
	for _, of := range []row{o.Key, o.Item} {
		if key, is := of["pk"]["S"].(string); is {
			r.Keys = append(r.Keys, upTo(key, "#"))
		}
		for name := range of {
			r.Attributes = append(r.Attributes, name)
		}
	}
	if found := equality.FindStringSubmatch(o.KeyConditionExpression); found != nil {
		if key, is := o.ExpressionAttributeValues[found[2]]["S"].(string); is && o.IndexName == "" {
			r.Keys = append(r.Keys, upTo(key, "#"))
		}
	}
	for _, name := range o.ExpressionAttributeNames {
		r.Attributes = append(r.Attributes, name)
	}
	for i, name := range r.Attributes {
		r.Attributes[i] = kind(name)
	}
	slices.Sort(r.Attributes)
	r.Attributes = slices.Compact(r.Attributes)
	return r
}

// upTo is the beginning of a text with the mark, or all of it where there is none.
func upTo(s, mark string) string {
	before, _, found := strings.Cut(s, mark)
	if found {
		return before + mark
	}
	return s
}

var numbered = regexp.MustCompile(`^(\w+_)\d+$`)

// kind of an attribute: the number or the name of a thing at its end is cut off.
func kind(name string) string {
	if found := numbered.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return upTo(name, "#")
}
