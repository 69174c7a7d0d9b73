package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
)

// flush empties Redis between two runs.
func (b *bench) flush(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", b.redis.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("FLUSHALL\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 64))
	return err
}

func (b *bench) printLags(lags []float64) {
	if len(lags) == 0 {
		return
	}
	slices.Sort(lags)
	fmt.Printf("    first seen on the feed after its stage ended: p50 %.0f ms, p95 %.0f ms, most %.0f ms (n=%d, read every %v)\n",
		1000*quantile(lags, 0.5), 1000*quantile(lags, 0.95), 1000*lags[len(lags)-1], len(lags), readEvery)
}

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
