package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
)

// cancels cancels runs and reads in the ledger when the last call began after the cancel was acknowledged.
func (b *bench) cancels(ctx context.Context) error {
	var late []float64
	for range b.runs(10, 3) {
		last, err := b.cancelled(ctx)
		if err != nil {
			return err
		}
		late = append(late, last.Seconds())
	}
	fmt.Printf("  last call begun after an acknowledged cancel, s   %s (the job is read every %v)\n", spreadOf(late).text("%.2f"), pipeline.DefaultPolicy().JobPoll)
	return nil
}

func (b *bench) cancelled(ctx context.Context) (time.Duration, error) {
	s, err := b.supervise(ctx, full.AtOnce)
	if err != nil {
		return 0, err
	}
	defer s.close()
	moment := 200 + rand.IntN(500)
	if err := s.until(ctx, func() bool { return s.begins >= moment }); err != nil {
		return 0, err
	}
	system, closeStore, err := s.system(ctx)
	if err != nil {
		return 0, err
	}
	defer closeStore()
	jobs, _, err := system.Backend.Store.OpenJobs(ctx, "")
	if err != nil || len(jobs) != 1 {
		return 0, fmt.Errorf("%d open jobs: %w", len(jobs), err)
	}
	if _, err := system.Submitter.Cancel(ctx, jobs[0].ID, "bench"); err != nil {
		return 0, err
	}
	acknowledged := pipeline.At(time.Now())
	if err := s.ends(ctx); err != nil && s.cmd.ProcessState.ExitCode() != 4 {
		return 0, err
	}
	last := time.Duration(0)
	for _, e := range s.entries {
		if e.Event == offline.Begin {
			last = max(last, e.At.Sub(acknowledged))
		}
	}
	return last, nil
}
