package simulation_test

import (
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"testing"

	"holdfast/pkg/simulation"
)

func TestAReportNamesWhatNeverHappened(t *testing.T) {
	r := simulation.NewReport()
	if got := r.Never(); !slices.Equal(got, simulation.Kinds()) {
		t.Errorf("of no world: never happened %v, want every kind", got)
	}
	if got := r.Unchecked(); len(got) != 10 {
		t.Errorf("of no world: unchecked %v, want all ten promises", got)
	}
	r.Count(simulation.Outcome{
		Fired:   []simulation.Fault{{N: 1, Kind: simulation.KillAfter}},
		Calls:   map[simulation.Kind]map[string]int{simulation.KillAfter: {"Claim": 1}},
		Checked: map[string]int{"P7": 3},
		History: simulation.History{Events: []simulation.Event{
			{Who: "worker-1", Op: "Claim", Write: true}, {Who: "worker-1", Op: "Task"}, {Who: "person-1", Op: "Redrive", Write: true},
		}},
	})
	if got := r.Never(); slices.Contains(got, simulation.KillAfter) || len(got) != len(simulation.Kinds())-1 {
		t.Errorf("never happened %v, want every kind but the one that did", got)
	}
	if got := r.Unchecked(); slices.Contains(got, "P7") || len(got) != 9 {
		t.Errorf("unchecked %v, want every promise but P7", got)
	}
	at := r.AtWrites()
	if len(at) != 2 || !slices.Contains(at["Claim"], simulation.DeployAll) || slices.Contains(at["Redrive"], simulation.DeployAll) || !slices.Contains(at["Redrive"], simulation.KillAfter) {
		t.Errorf("kinds at writes %v, want those of a claim and of a person's redrive, and of no read", at)
	}
	never := r.PrintWrites(io.Discard, at)
	if want := len(at["Claim"]) + len(at["Redrive"]) - 1; len(never) != want || slices.Contains(never, "Claim: "+string(simulation.KillAfter)) {
		t.Errorf("%d pairs of write and kind never happened: %v; want %d, all but the one", len(never), never, want)
	}
}

func TestReportsAddUp(t *testing.T) {
	one := simulation.Run(t, simulation.NewSpec(11))
	sum, twice := simulation.NewReport(), simulation.NewReport()
	for range 2 {
		part := simulation.NewReport()
		part.Count(one)
		body, err := json.Marshal(part) // as a process hands it on
		if err != nil {
			t.Fatal(err)
		}
		read := simulation.NewReport()
		if err := json.Unmarshal(body, read); err != nil {
			t.Fatal(err)
		}
		sum.Add(read)
		twice.Count(one)
	}
	if !reflect.DeepEqual(sum, twice) {
		t.Errorf("two reports add up to %+v, and both worlds in one are %+v", sum, twice)
	}
}
