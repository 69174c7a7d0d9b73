package simulation_test

import (
	"fmt"
	"testing"

	"holdfast/pkg/simulation"
)

func TestWorld(t *testing.T) {
	if *seed == 0 {
		t.Skip("give -seed")
	}
	spec := simulation.NewSpec(*seed)
	out := simulation.Run(t, spec)
	ev := out.History.Events
	if len(ev) > 900 {
		ev = ev[:900]
	}
	for _, e := range ev {
		fmt.Println(e)
	}
	fmt.Println(out.Broken)
}
