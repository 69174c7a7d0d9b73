package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory runs the real worker and reads the most memory that it had, and what it logged.
func (b *bench) memory(ctx context.Context) error {
	for _, atOnce := range []int{64, 512} {
		var most, logged []float64
		for range b.runs(5, 1) {
			rss, bytes, err := b.weighed(ctx, atOnce)
			if err != nil {
				return err
			}
			most = append(most, float64(rss)/1e6)
			logged = append(logged, float64(bytes)/float64(full.calls()))
		}
		fmt.Printf("  worker with %3d calls at once: memory %s MB, log %s B a call\n", atOnce, spreadOf(most).text("%.0f"), spreadOf(logged).text("%.1f"))
	}
	return nil
}

func (b *bench) weighed(ctx context.Context, atOnce int) (rss, logged int64, err error) {
	s, err := b.supervise(ctx, atOnce)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	err = s.until(ctx, func() bool {
		if s.begins > 0 {
			rss = max(rss, mostMemory(s.worker()))
		}
		return s.begins >= full.calls()
	})
	if err != nil {
		return 0, 0, err
	}
	if err := s.ends(ctx); err != nil {
		return 0, 0, err
	}
	logged, err = s.logBytes()
	return rss, logged, err
}

// mostMemory is the most resident memory that a process had; 0 when it has gone.
func mostMemory(process int) int64 {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	for line := range strings.Lines(string(body)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kb, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
