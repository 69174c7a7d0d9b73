package cli

import (
	"context"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

type reportCmd struct{ jobArg }

func (c *reportCmd) Run(a *app) error { return nil }

func writeReport(ctx context.Context, s *wiring.System, r pipeline.Result, dir string) ([]string, error) {
	return nil, nil
}
