// Command api answers HTTP requests: submit, look, steer.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/api"
	"holdfast/pkg/config"
	"holdfast/pkg/function"
)

func main() {
	p, err := function.Open(context.Background(), config.API, nil)
	if err != nil {
		function.Exit(err)
	}
	a := api.New(api.Config{
		Backend: p.System.Backend, Model: p.Model, Policy: p.Env.Policy, Clock: p.Clock, Log: p.Log,
		TenantFrom: p.Env.TenantFrom, MaxCost: p.Env.MaxCost, NewID: function.RandomID,
	})
	function.Serve(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		defer p.Event()()
		return a.Handle(ctx, e)
	}, p)
}
