package simulation_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"holdfast/pkg/simulation"
)

func TestScan(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SCAN"))
	from, _ := strconv.ParseUint(os.Getenv("FROM"), 10, 64)
	if n == 0 {
		t.Skip()
	}
	found := map[string]int{}
	events := 0
	fired := map[simulation.Kind]int{}
	begin := time.Now()
	for s := from; s < from+uint64(n); s++ {
		_ = os.WriteFile("/tmp/sim.last", []byte(fmt.Sprint(s)), 0o600)
		out := simulation.Run(t, simulation.NewSpec(s))
		events += len(out.History.Events)
		for _, f := range out.Fired {
			fired[f.Kind]++
		}
		if out.Broken != nil {
			key := out.Broken.Rule
			found[key]++
			if found[key] <= 2 {
				fmt.Printf("seed %d events %d: %s\n    %v\n", s, len(out.History.Events), out.Broken, out.Fired)
			}
		}
	}
	for k, n := range found {
		fmt.Println(n, k)
	}
	fmt.Println(events/n, float64(n)/time.Since(begin).Seconds())
	fmt.Println(fired)
}
