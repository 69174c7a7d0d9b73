//go:build !embedded

package function

import (
	"context"
	"errors"

	"holdfast/pkg/config"
	"holdfast/pkg/wiring"
)

// openEmbedded refuses: what runs on AWS does not carry a database.
func openEmbedded(context.Context, config.Environment) (*wiring.Backend, error) {
	return nil, errors.New("this build has no embedded backend: build with -tags embedded, or set " + config.BackendVar + " to " + config.AWSBackend)
}
