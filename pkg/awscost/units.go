package awscost

import (
	"encoding/json"
	"math"
	"strings"
)

// value is an attribute as the wire has it.
type value = map[string]any

// request is what the rules need to know of a request and of an answer.
type request struct {
	TableName, UpdateExpression string
	ConsistentRead              bool
	IndexName                   string
	Item, Key                   map[string]value
	ExpressionAttributeNames    map[string]string
	ExpressionAttributeValues   map[string]value
	TransactItems               []map[string]request
	RequestItems                map[string]struct {
		ConsistentRead bool
		Keys           []map[string]value
	}
}

type response struct {
	Item, Attributes    map[string]value
	Items               []map[string]value
	Responses           map[string][]map[string]value
	CancellationReasons []struct{ Item map[string]value }
}

func unitsOf(op string, body, answer []byte) Count {
	if op == "BatchWriteItem" {
		return Count{Requests: 1, Writes: batchUnits(body)}
	}
	c := Count{Requests: 1}
	var in request
	var out response
	if answer == nil || json.Unmarshal(body, &in) != nil || json.Unmarshal(answer, &out) != nil {
		return c
	}
	switch op {
	case "GetItem":
		c.Reads = reading(sizeOf(out.Item), in.ConsistentRead)
	case "Query":
		sum := 0
		for _, row := range out.Items {
			sum += sizeOf(row)
		}
		c.Reads = reading(sum, in.ConsistentRead)
	case "BatchGetItem":
		for table, asked := range in.RequestItems {
			found := out.Responses[table]
			for _, row := range found {
				c.Reads += reading(sizeOf(row), asked.ConsistentRead)
			}
			c.Reads += float64(len(asked.Keys)-len(found)) * reading(0, asked.ConsistentRead)
		}
	case "TransactWriteItems":
		for _, part := range in.TransactItems {
			for _, write := range part {
				c.Writes += 2*writing(max(sizeOf(write.Item), sizeOf(write.Key)+sizeOf(write.ExpressionAttributeValues))) + write.index()
			}
		}
	case "PutItem", "UpdateItem", "DeleteItem":
		c.Writes = writing(max(sizeOf(in.Item), sizeOf(out.Attributes), sizeOf(out.Item), sizeOf(in.Key)))
		if out.Item == nil { // a refused condition changes no index
			c.Writes += in.index()
		}
	}
	return c
}

// batchUnits is what a batch of puts costs: as much as each of them.
func batchUnits(body []byte) float64 {
	var in struct {
		RequestItems map[string][]struct{ PutRequest request }
	}
	if json.Unmarshal(body, &in) != nil {
		return 0
	}
	sum := 0.0
	for _, writes := range in.RequestItems {
		for _, write := range writes {
			sum += writing(sizeOf(write.PutRequest.Item))
		}
	}
	return sum
}

// index is what a write costs in the due index, which has keys alone.
func (r request) index() float64 {
	if r.Item != nil {
		if _, listed := r.Item["due_shard"]; listed {
			return 1
		}
		return 0
	}
	moves := strings.Contains(r.UpdateExpression, "#due_at =")
	removed := strings.Contains(r.UpdateExpression, "REMOVE #due_shard")
	switch {
	case removed:
		return 1
	case moves:
		return 2
	}
	return 0
}

func writing(bytes int) float64 { return max(1, math.Ceil(float64(bytes)/1024)) }

func reading(bytes int, consistent bool) float64 {
	units := max(1, math.Ceil(float64(bytes)/4096))
	if consistent {
		return units
	}
	return units / 2
}

// sizeOf is the size of a row as DynamoDB counts: names and values; a number has half a byte a digit and one more.
func sizeOf(row map[string]value) (bytes int) {
	for name, v := range row {
		bytes += len(name)
		for kind, content := range v {
			text, _ := content.(string)
			switch kind {
			case "N":
				bytes += (len(text)+1)/2 + 1
			case "B":
				bytes += len(text) * 3 / 4
			case "S":
				bytes += len(text)
			default:
				bytes++
			}
		}
	}
	return bytes
}
