package simulation_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/simulation"
)

var (
	seed   = flag.Uint64("seed", 0, "the seed of the one world that TestWorld runs")
	faults = flag.String("faults", "", "these faults and no others, as a failure prints them; \"none\" for none")
	calm   = flag.Int("calm", -1, "from this event on everybody goes on in the order of arrival")
)

func TestMain(m *testing.M) {
	flag.Parse()
	simulation.Single()
	debug.SetGCPercent(400)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}
