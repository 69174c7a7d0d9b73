package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// quota runs the test of the limiter, which is in virtual time, and prints what it tells.
func (b *bench) quota(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "./pkg/wiring", "-run", "TestQuota", "-v", "-count", "1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if _, figure, found := strings.Cut(line, "quota: "); found {
			fmt.Printf("  %s", figure)
		}
	}
	if err != nil {
		return fmt.Errorf("go test ./pkg/wiring -run TestQuota: %w", err)
	}
	return nil
}
