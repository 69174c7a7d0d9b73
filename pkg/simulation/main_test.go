package simulation_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/simulation"
)

// firstSeed is where the worlds of CI begin. It was fixed before the first bug was planted.
const firstSeed = 1

var (
	seed    = flag.Uint64("seed", 0, "the seed of the one world that TestWorld runs")
	faults  = flag.String("faults", "", "of TestWorld: these faults and no others, as a failure prints them; \"none\" for none")
	calm    = flag.Int("calm", -1, "of TestWorld: from this event on everybody goes on in the order of arrival")
	chunks  = flag.Int("chunks", 3, "of TestWorld")
	stages  = flag.Int("stages", 2, "of TestWorld")
	calls   = flag.Int("calls", 2, "of TestWorld: calls a stage")
	workers = flag.Int("workers", 3, "of TestWorld")

	shrink = flag.Bool("shrink", true, "look for the shortest history of a broken world")
	worlds = flag.Int("worlds", 100, "how many worlds TestWorlds runs, and TestSim")
	first  = flag.Uint64("first", firstSeed, "their first seed")
	stride = flag.Int("stride", 1, "TestShard runs one in so many")
	shard  = flag.String("shard", "", "TestShard: what to run, worlds or forced")
	budget = flag.Duration("budget", 0, "after so long no further world is begun; 0 = no limit")
	state  = flag.String("state", "", "TestSim: file that remembers how far a long run is; the same command goes on from there")
)

func TestMain(m *testing.M) {
	flag.Parse()
	simulation.Single()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// until says that there is time for another world.
func until(begin time.Time) bool { return *budget == 0 || time.Since(begin) < *budget }
