package stacks_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"holdfast/cdk/price"
	"holdfast/cdk/template"
	"holdfast/pkg/pipeline"
)

// What a deployment costs a month while nothing is done. The README tells the same figures.
var idle = []struct {
	settings []string
	dollars  float64
}{
	{nil, 6.17},
	{[]string{"workers=both", "image=v1"}, 44.37},
	{[]string{"workers=fargate", "image=v1"}, 61.56},
	{[]string{"workers=fargate", "image=v1", "public=true"}, 36.01},
}

func TestTheIdlePriceOfADeployment(t *testing.T) {
	list, err := price.Read()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range idle {
		d := deployed(t, c.settings...)
		lines, got, err := price.Idle(list, template.Join(d.state, d.workers))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			t.Logf("%8.2f  %s", line.Dollars, line.What)
		}
		t.Logf("%8.2f  a month, %v, %s, prices as of %s", got, c.settings, list.Region, list.AsOf)
		if math.Abs(got-c.dollars) > 0.01 {
			t.Errorf("%v: got $%.2f a month, want $%.2f", c.settings, got, c.dollars)
		}
		if !strings.Contains(string(readme), fmt.Sprintf("| %.2f", c.dollars)) {
			t.Errorf("%v: the README does not say %.2f", c.settings, c.dollars)
		}
	}
}

// What is assumed of an idle deployment is what the program does.
func TestWhatIsAssumedOfSweepsIsSo(t *testing.T) {
	list, err := price.Read()
	if err != nil {
		t.Fatal(err)
	}
	policy := pipeline.DefaultPolicy()
	same(t, "read units of a sweep", list.Idle["sweep-read-units"].Value, (pipeline.DueShards+2)/2.0)
	same(t, "seconds between the sweeps of a task", list.Idle["task-sweep-every-seconds"].Value, policy.RenewEvery.Seconds())
}
