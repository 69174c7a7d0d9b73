package dynamostore

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression collects the names and values that conditions and updates speak of.
type expression struct {
	names  map[string]string
	values item
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, values: item{}}
}

func (e *expression) name(column string) string {
	name := "#" + column
	for short, full := range e.names {
		if full == column {
			return short
		}
	}
	if strings.ContainsAny(column, "#-. ") {
		name = fmt.Sprintf("#n%d", len(e.names))
	}
	e.names[name] = column
	return name
}

func (e *expression) value(v any) string {
	name := fmt.Sprintf(":v%d", len(e.values))
	e.values[name] = valueOf(v)
	return name
}

// clause is one part of a condition.
type clause func(e *expression) string

// compared is a comparison of a column with a value, in which a missing column counts as zero.
func compared(column, operator string, v any, zeroHolds bool) clause {
	return func(e *expression) string {
		holds := e.name(column) + " " + operator + " " + e.value(v)
		if zeroHolds {
			return "(attribute_not_exists(" + e.name(column) + ") OR " + holds + ")"
		}
		return holds
	}
}

// number is what columns with an order hold.
type number interface{ ~int | ~int64 }

func equals[N number](column string, n N) clause { return compared(column, "=", int64(n), n == 0) }
func below[N number](column string, n N) clause  { return compared(column, "<", int64(n), 0 < n) }
func atMost[N number](column string, n N) clause { return compared(column, "<=", int64(n), 0 <= n) }

func atLeast[N number](column string, n N) clause { return compared(column, ">=", int64(n), 0 >= n) }

// reads says that a column holds this text. It never holds of a row that is missing: no write may bring one back.
func reads[S ~string](column string, text S) clause {
	return compared(column, "=", string(text), false)
}

// absent says that a column, or with a key column the whole row, is not there.
func absent(column string) clause {
	return func(e *expression) string { return "attribute_not_exists(" + e.name(column) + ")" }
}

// present says that it is there.
func present(column string) clause {
	return func(e *expression) string { return "attribute_exists(" + e.name(column) + ")" }
}

// either says that at least one holds.
func either(clauses ...clause) clause {
	return func(e *expression) string { return "(" + join(e, clauses, " OR ") + ")" }
}

// all says that each holds.
func all(clauses ...clause) clause {
	return func(e *expression) string { return join(e, clauses, " AND ") }
}

func join(e *expression, clauses []clause, word string) string {
	var parts []string
	for _, c := range clauses {
		parts = append(parts, c(e))
	}
	return strings.Join(parts, word)
}

// change is one assignment of an update, or a removal.
type change struct {
	column string
	to     any
	add    bool // to is added to what is there
	remove bool
}

func set(column string, v any) change { return change{column: column, to: v} }
func add[N number](column string, by N) change {
	return change{column: column, to: int64(by), add: true}
}
func remove(column string) change                { return change{column: column, remove: true} }
func (c change) assignment(e *expression) string { return e.name(c.column) + " = " + c.operand(e) }

func (c change) operand(e *expression) string {
	if !c.add {
		return e.value(c.to)
	}
	return fmt.Sprintf("if_not_exists(%s, %s) + %s", e.name(c.column), e.value(int64(0)), e.value(c.to))
}

func (e *expression) update(changes []change) string {
	var sets, removes []string
	for _, c := range changes {
		if c.remove {
			removes = append(removes, e.name(c.column))
		} else {
			sets = append(sets, c.assignment(e))
		}
	}
	text := ""
	if len(sets) > 0 {
		text = "SET " + strings.Join(sets, ", ")
	}
	if len(removes) > 0 {
		text += " REMOVE " + strings.Join(removes, ", ")
	}
	return strings.TrimSpace(text)
}

// put is a put of a row under a condition; a refusal shows the row that stands.
func put(table string, row item, condition clause) *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{TableName: aws.String(table), Item: row}
	if condition == nil {
		return in
	}
	e := newExpression()
	in.ConditionExpression = aws.String(condition(e))
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.valuesOrNone()
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return in
}

// update is an update of a row under a condition; it returns the row as it then is, a refusal the row that stands.
func update(table string, key item, condition clause, changes ...change) *dynamodb.UpdateItemInput {
	e := newExpression()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: key,
		ConditionExpression:                 aws.String(condition(e)),
		UpdateExpression:                    aws.String(e.update(changes)),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.valuesOrNone()
	return in
}

// valuesOrNone: an empty list of values is refused.
func (e *expression) valuesOrNone() item {
	if len(e.values) == 0 {
		return nil
	}
	return e.values
}
