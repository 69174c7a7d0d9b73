package main

import (
	"context"
	"fmt"
)

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
