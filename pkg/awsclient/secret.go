package awsclient

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Secret is the text of a secret, by its name or ARN.
func (c *Clients) Secret(ctx context.Context, id string) (string, error) {
	client := secretsmanager.NewFromConfig(c.cfg, func(o *secretsmanager.Options) {
		o.BaseEndpoint = address(c.settings.Endpoint)
		o.Retryer = c.retryer(queueTries)
		o.HTTPClient = c.http(storeTimeout)
	})
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(id)})
	if err != nil {
		return "", fmt.Errorf("read the secret %s: %w", id, err)
	}
	if aws.ToString(out.SecretString) == "" {
		return "", fmt.Errorf("the secret %s has no text: put the key into it as plain text", id)
	}
	return aws.ToString(out.SecretString), nil
}
