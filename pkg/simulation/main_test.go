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
	one = askedBy(flag.CommandLine) // the world of TestWorld

	shrink = flag.Bool("shrink", true, "look for the shortest history of a broken world")
	worlds = flag.Int("worlds", 100, "how many worlds TestWorlds runs, and TestSim")
	first  = flag.Uint64("first", firstSeed, "their first seed")
	stride = flag.Int("stride", 1, "TestShard runs one in so many")
	shard  = flag.String("shard", "", "TestShard: what to run, worlds or forced")
	budget = flag.Duration("budget", 0, "after so long no further world is begun; 0 = no limit")
	state  = flag.String("state", "", "TestSim: file that remembers how far a long run is; the same command goes on from there")
)

// asked is the one world that flags ask for, as a failure prints them.
type asked struct {
	seed   uint64
	faults string
	spec   simulation.Spec
}

func askedBy(set *flag.FlagSet) *asked {
	usual := simulation.NewSpec(0)
	a := &asked{spec: usual}
	set.Uint64Var(&a.seed, "seed", 0, "the seed of the one world that TestWorld runs")
	set.StringVar(&a.faults, "faults", "", "of TestWorld: these faults and no others, as a failure prints them; \"none\" for none")
	set.IntVar(&a.spec.Calm, "calm", usual.Calm, "of TestWorld: from this event on everybody goes on in the order of arrival")
	set.IntVar(&a.spec.Chunks, "chunks", usual.Chunks, "of TestWorld")
	set.IntVar(&a.spec.Stages, "stages", usual.Stages, "of TestWorld")
	set.IntVar(&a.spec.Calls, "calls", usual.Calls, "of TestWorld: calls a stage")
	set.IntVar(&a.spec.Workers, "workers", usual.Workers, "of TestWorld")
	set.IntVar(&a.spec.Reapers, "reapers", usual.Reapers, "of TestWorld")
	return a
}

func (a *asked) world() (simulation.Spec, error) {
	spec := a.spec
	spec.Seed = a.seed
	switch a.faults {
	case "":
		return spec, nil
	case "none":
		spec.Fixed = []simulation.Fault{}
		return spec, nil
	}
	fixed, err := simulation.ParseFaults(a.faults)
	spec.Fixed = fixed
	return spec, err
}

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
