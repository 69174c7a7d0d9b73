package dynamostore

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is a row as DynamoDB has it.
type item = map[string]types.AttributeValue

// valueOf is a value as DynamoDB has it.
func valueOf(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []byte:
		if v == nil {
			v = []byte{}
		}
		return &types.AttributeValueMemberB{Value: v}
	}
	panic(fmt.Sprintf("no column holds a %T", v)) // only a mistake of ours gets here
}

// textIn is a column's text; "" where there is none.
func textIn(row item, column string) string {
	if v, ok := row[column].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// numberIn is a column's number; 0 where there is none.
func numberIn(row item, column string) int64 {
	v, ok := row[column].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return 0 // what a person left there: one odd row must not hide the others of its page
	}
	return n
}

func flagIn(row item, column string) bool {
	v, ok := row[column].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

func bytesIn(row item, column string) []byte {
	if v, ok := row[column].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

// keyOf is the key of a row.
func keyOf(partition, sort string) item {
	return item{PartitionKey: valueOf(partition), SortKey: valueOf(sort)}
}

// keyIn is the key that a row has.
func keyIn(row item) item {
	return item{PartitionKey: row[PartitionKey], SortKey: row[SortKey]}
}
