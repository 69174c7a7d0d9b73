package function

import (
	"context"
	"fmt"
	"strings"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/config"
	"holdfast/pkg/offline"
	"holdfast/pkg/openai"
	"holdfast/pkg/pipeline"
)

// OpenModel is the model that the environment names. Nothing is asked yet, but for the secret that has its key.
func OpenModel(ctx context.Context, env config.Environment) (pipeline.Model, error) {
	like, err := config.FindModel(env.PriceAs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.PriceAsVar, err)
	}
	if env.Model == config.OfflineModel {
		faults, err := offline.ParseFaults(env.Fail)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", config.FailVar, err)
		}
		return limited{offline.New(offline.Config{
			Seed: 1, Pace: env.Pace, Faults: faults, Worker: string(env.Process), Price: like.Price(), PricedAs: env.PriceAs,
		}), env.TokensPerMinute}, nil
	}
	name := strings.TrimPrefix(env.Model, config.OpenAIPrefix)
	key, err := modelKey(ctx, env)
	if err != nil {
		return nil, err
	}
	return openai.New(openai.Config{
		URL: env.ModelURL, Key: key, Name: name, Calls: env.InFlight,
		Info: pipeline.ModelInfo{
			Name: env.Model, Version: "1", Price: like.Price(), PricedAs: env.PriceAs,
			ContextTokens: like.Context, MaxOutput: like.MaxOutput, TokensPerMinute: env.TokensPerMinute,
		},
	}), nil
}

// modelKey is the server's key: the environment's, or that of the secret which it names.
func modelKey(ctx context.Context, env config.Environment) (string, error) {
	switch {
	case env.ModelKey != "":
		key, err := keyIn("the value", env.ModelKey)
		if err != nil {
			err = fmt.Errorf("%s: %w", config.ModelKeyVar, err)
		}
		return key, err
	case env.ModelKeySecret == "":
		return "", nil
	}
	clients, err := awsclient.New(ctx, awsclient.Settings{Endpoint: env.Endpoint})
	if err != nil {
		return "", err
	}
	defer clients.Close()
	secret, err := clients.Secret(ctx, env.ModelKeySecret)
	if err == nil {
		secret, err = keyIn("the secret", secret)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", config.ModelKeySecretVar, err)
	}
	return secret, nil
}

// keyIn is the key that a secret, or a variable, holds. What no server would take is told at the start, and not by each
// call.
func keyIn(what, text string) (string, error) {
	key := strings.TrimSpace(text)
	switch {
	case key == "":
		return "", fmt.Errorf("%s is empty: store the server's key in it, as plain text", what)
	case strings.HasPrefix(key, "{"):
		return "", fmt.Errorf("%s holds JSON (a list of keys and values): store the server's key alone in it, as plain text", what)
	case strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", fmt.Errorf("%s holds something that is no key, with spaces, line breaks or other characters in it: store the server's key alone in it, as plain text", what)
	}
	return key, nil
}

// limited is a model with a quota that all workers share.
type limited struct {
	pipeline.Model
	tokens int
}

// Info describes the model.
func (l limited) Info() pipeline.ModelInfo {
	info := l.Model.Info()
	info.TokensPerMinute = l.tokens
	return info
}
