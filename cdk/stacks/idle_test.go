package stacks_test

import (
	"math"
	"testing"

	"holdfast/cdk/price"
	"holdfast/cdk/template"
)

// What a deployment costs a month while nothing is done. The README tells the same figures.
var idle = []struct {
	settings []string
	dollars  float64
}{
	{nil, 6.14},
	{[]string{"workers=both", "image=v1"}, 44.34},
	{[]string{"workers=fargate", "image=v1"}, 61.92},
	{[]string{"workers=fargate", "image=v1", "public=true"}, 36.37},
}

func TestTheIdlePriceOfADeployment(t *testing.T) {
	list, err := price.Read()
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
	}
}
