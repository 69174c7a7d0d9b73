package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/pkg/pipeline"
)

func breakerKey(model string) item { return keyOf(limitPartition(model), "breaker") }

// cooldown reads the breaker and its text, which the next write compares.
func (s *Store) cooldown(ctx context.Context, model string) (c pipeline.Cooldown, body string, err error) {
	row, err := s.get(ctx, s.rows, breakerKey(model))
	if err != nil || row == nil {
		return c, "", err
	}
	body = textIn(row, bodyKey)
	c, err = pipeline.Decode[pipeline.Cooldown]([]byte(body), "breaker of "+model)
	return c, body, err
}

// Cooldown reads the breaker.
func (s *Store) Cooldown(ctx context.Context, model string) (pipeline.Cooldown, error) {
	c, _, err := s.cooldown(ctx, model)
	return c, named("breaker of "+model, err)
}

// Strike counts a failure of the model against its breaker.
func (s *Store) Strike(ctx context.Context, strike pipeline.Strike) (c pipeline.Cooldown, err error) {
	err = repeat(ctx, func() (again bool, err error) {
		seen, body, err := s.cooldown(ctx, strike.Model)
		if err != nil {
			return false, err
		}
		c = seen.Struck(strike)
		row := breakerKey(strike.Model)
		row[bodyKey] = valueOf(string(pipeline.Encode(c)))
		_, err = s.client.PutItem(ctx, put(s.rows, row, still(body)))
		if _, is := refused(err); is {
			return true, nil
		}
		return false, explain(ctx, err)
	})
	return c, named("strike against "+strike.Model, err)
}

// still says that the breaker reads as it did, or is not there if it was not.
func still(body string) clause {
	if body == "" {
		return absent(PartitionKey)
	}
	return reads(bodyKey, body)
}

// CloseBreaker forgets the strikes.
func (s *Store) CloseBreaker(ctx context.Context, model string) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.rows), Key: breakerKey(model)})
	return named("close the breaker of "+model, explain(ctx, err))
}
