//go:build embedded

package function

import (
	"context"

	"holdfast/pkg/config"
	"holdfast/pkg/wiring"
	"holdfast/pkg/wiring/embedded"
)

// openEmbedded opens the backend of one machine: for a look at one event without AWS.
func openEmbedded(ctx context.Context, env config.Environment) (*wiring.Backend, error) {
	return embedded.Open(ctx, embedded.Config{Dir: env.Store, Owner: string(env.Process)}, env.Policy)
}
