package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// makespan runs the whole work with each contender in turn, so that noise hits all alike.
func (b *bench) makespan(ctx context.Context) error {
	defer b.stopServers()
	b.startServers(ctx)
	failing := full
	failing.Fail = 0.05
	return errors.Join(b.compare(ctx, "no failures", full), b.compare(ctx, "5 % of the tries fail", failing))
}

// startServers starts what the anchors need; what is not installed is told in one line, and its anchor left out.
func (b *bench) startServers(ctx context.Context) {
	var err error
	if b.postgres, err = startPostgres(ctx); err != nil {
		b.postgres = nil
		fmt.Printf("  river is left out: %v\n", err)
	}
	if b.redis, err = startRedis(ctx); err != nil {
		b.redis = nil
		fmt.Printf("  asynq is left out: %v\n", err)
	}
}

func (b *bench) stopServers() {
	for _, s := range []*server{b.postgres, b.redis} {
		if err := s.stop(); err != nil {
			fmt.Printf("  stop %s: %v\n", s.name, err)
		}
	}
}

// entrant is a contender of a comparison, and what it is held against: the bare calls in the same order as its own.
type entrant struct {
	child
	against string
}

func (b *bench) entrants(l load) []entrant {
	all := []entrant{
		{child{Contender: "null", Load: l}, "null"},
		{child{Contender: "holdfast", Load: l, Feed: true}, "null"},
		{child{Contender: "plain", Load: l}, "null"},
		{child{Contender: "flat", Load: l}, "flat"},
	}
	if b.postgres != nil {
		all = append(all, entrant{child{Contender: "river", Load: l, Server: b.postgres.address}, "flat"})
	}
	if b.redis != nil {
		all = append(all, entrant{child{Contender: "asynq", Load: l, Server: b.redis.address}, "flat"})
	}
	return all
}

// compare prints each contender's makespan as a ratio to the bare calls of the same round.
func (b *bench) compare(ctx context.Context, name string, l load) error {
	all := b.entrants(l)
	ratios, times, costs := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	var lags []float64
	for range b.runs(7, 3) {
		round := map[string]report{}
		for _, e := range all {
			if b.redis != nil && e.Contender == "asynq" {
				if err := b.flush(ctx); err != nil {
					return err
				}
			}
			r, err := e.run(ctx)
			if err != nil {
				return err
			}
			round[e.Contender] = r
		}
		for _, e := range all {
			r, bare := round[e.Contender], round[e.against]
			ratios[e.Contender] = append(ratios[e.Contender], float64(r.Makespan)/float64(bare.Makespan))
			times[e.Contender] = append(times[e.Contender], r.Makespan.Seconds())
			costs[e.Contender] = append(costs[e.Contender], float64(r.CPU-bare.CPU)/float64(r.Calls)/1e6)
			for _, lag := range r.FeedLag {
				lags = append(lags, lag.Seconds())
			}
		}
	}
	fmt.Printf("  %s\n", name)
	for _, e := range all {
		fmt.Printf("    %-9s %-36s of %-5s %-32s s, CPU %s ms a call more\n", e.Contender, spreadOf(ratios[e.Contender]).text("%.3f"), e.against,
			spreadOf(times[e.Contender]).text("%.2f"), fmt.Sprintf("%.2f", spreadOf(costs[e.Contender]).median))
	}
	b.printLags(lags)
	return nil
}

func (b *bench) printLags(lags []float64) {
	if len(lags) == 0 {
		return
	}
	slices.Sort(lags)
	fmt.Printf("    first seen on the feed after its stage ended: p50 %.0f ms, p95 %.0f ms, most %.0f ms (n=%d, read every %v)\n",
		1000*quantile(lags, 0.5), 1000*quantile(lags, 0.95), 1000*lags[len(lags)-1], len(lags), readEvery)
}
