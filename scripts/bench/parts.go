package main

import (
	"context"
	"fmt"
	"net"
	"slices"
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
