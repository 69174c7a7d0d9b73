package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
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

// speed runs the work with a model that answers at once.
func (b *bench) speed(ctx context.Context) error {
	defer b.stopServers()
	b.startServers(ctx)
	l := full
	l.Latency = 0
	names := []string{"plain", "holdfast", "holdfast, FULL"}
	all := map[string]child{
		"plain": {Contender: "plain", Load: l}, "holdfast": {Contender: "holdfast", Load: l}, "holdfast, FULL": {Contender: "holdfast", Load: l, FullSync: true},
	}
	if b.postgres != nil {
		names, all["river"] = append(names, "river"), child{Contender: "river", Load: l, Server: b.postgres.address}
	}
	if b.redis != nil {
		names, all["asynq"] = append(names, "asynq"), child{Contender: "asynq", Load: l, Server: b.redis.address}
	}
	rates, costs := map[string][]float64{}, map[string][]float64{}
	for range b.runs(7, 3) {
		for _, name := range names {
			if name == "asynq" {
				if err := b.flush(ctx); err != nil {
					return err
				}
			}
			r, err := all[name].run(ctx)
			if err != nil {
				return err
			}
			rates[name] = append(rates[name], float64(r.Calls)/r.Makespan.Seconds())
			costs[name] = append(costs[name], float64(r.CPU)/float64(r.Calls)/1e6)
		}
	}
	for _, name := range names {
		fmt.Printf("  %-15s %s calls/s, CPU %s ms a call\n", name, spreadOf(rates[name]).text("%.0f"), spreadOf(costs[name]).text("%.2f"))
	}
	return nil
}
