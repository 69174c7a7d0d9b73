//go:build localstack

package cli

import (
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/wiring"
)

// With this tag the desks and benches of the other tests keep their state in LocalStack, each in a stack of its own.
func init() { elsewhere = onLocalStack }

func onLocalStack(t *testing.T, policy string) (backendFlags, string) {
	t.Helper()
	where := backendFlags{Backend: awsBackend, Endpoint: awstest.Endpoint(awstest.All), Stack: awstest.Stack()}
	awstest.Made(t, wiring.CreateAWS(t.Context(), where.aws(), pipeline.DefaultPolicy()))
	for name, value := range map[string]string{
		"HOLDFAST_BACKEND": where.Backend, "HOLDFAST_ENDPOINT": where.Endpoint, "HOLDFAST_STACK": where.Stack,
	} {
		t.Setenv(name, value)
	}
	policy = slower.Replace(policy)
	if !strings.Contains(policy, "ring_delay") {
		policy += "ring_delay: 3s\nring_limit: 30s\n" // a message that a killed worker had received comes back only after minutes
	}
	return where, policy
}

// slower: LocalStack takes ten milliseconds for what a folder takes in a tenth of one, and a busy machine more.
var slower = strings.NewReplacer("claim_ttl: 2s", "claim_ttl: 6s", "renew_every: 500ms", "renew_every: 1s", "max_skew: 500ms", "max_skew: 1s")
