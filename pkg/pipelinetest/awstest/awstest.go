// Package awstest is what the tests on LocalStack have in common: where it answers, clients of it, and a deployment of
// its own for each test.
//
// It may not skip: where LocalStack does not run, its tests fail and say how to start it.
package awstest

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"holdfast/pkg/awsclient"
)

// Services that may have an address of their own.
const (
	All      = ""
	DynamoDB = "DYNAMODB" // a DynamoDB without LocalStack before it is several times faster
)

// Endpoint is where a service answers: AWS_ENDPOINT_URL_DYNAMODB for that one, AWS_ENDPOINT_URL for all, or the port of
// `make localstack`.
func Endpoint(service string) string {
	for _, name := range []string{"AWS_ENDPOINT_URL_" + service, "AWS_ENDPOINT_URL"} {
		if url := os.Getenv(name); url != "" {
			return url
		}
	}
	return "http://127.0.0.1:4566"
}

// Clients are clients of a service, closed when the test ends. Settings without an endpoint get the service's.
func Clients(t testing.TB, service string, settings awsclient.Settings) *awsclient.Clients {
	t.Helper()
	if settings.Endpoint == "" {
		settings.Endpoint = Endpoint(service)
	}
	clients, err := awsclient.New(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Close)
	return clients
}

var stacks atomic.Int64

// Stack is a name for a deployment that no other test has.
func Stack() string { return fmt.Sprintf("test-%d-%d", os.Getpid(), stacks.Add(1)) }

// Made ends a test whose deployment could not be made.
func Made(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\nthese tests need LocalStack: make localstack", err)
	}
}

// Removed tells of a deployment that could not be removed: the next has another name.
func Removed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Log(err)
	}
}
