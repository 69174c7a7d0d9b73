package price_test

import (
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/cdk/price"
	"holdfast/cdk/template"
)

func parsed(t *testing.T, resources string) template.Template {
	t.Helper()
	out, err := template.Parse([]byte(`{"Resources": {` + resources + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func list(t *testing.T) price.List {
	t.Helper()
	l, err := price.Read()
	if err != nil {
		t.Fatal(err)
	}
	if l.AsOf == "" || l.Source == "" || l.Region == "" {
		t.Errorf("got %+v, want a date, a source and a region", l)
	}
	for name, idle := range l.Idle {
		if idle.Why == "" {
			t.Errorf("the assumption %s has no reason", name)
		}
	}
	return l
}

// A price that nobody asks for is one that nobody keeps right.
func TestEveryPriceAndEveryAssumptionIsUsed(t *testing.T) {
	source, err := os.ReadFile("resources.go")
	if err != nil {
		t.Fatal(err)
	}
	l := list(t)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(l.Prices)), slices.Collect(maps.Keys(l.Idle))) {
		stem := strings.TrimSuffix(strings.TrimSuffix(name, "arm64"), "amd64") // of which an architecture is made a whole name
		if !strings.Contains(string(source), `"`+stem+`"`) {
			t.Errorf("nobody asks for %s", name)
		}
	}
}

func TestIdle(t *testing.T) {
	l := list(t)
	for name, c := range map[string]struct {
		resources string
		want      float64
	}{
		"what nothing is done with costs nothing": {`"Q": {"Type": "AWS::SQS::Queue"}, "T": {"Type": "AWS::DynamoDB::Table"}`, 0},
		"alarms are charged by the metric, and those of our own beside": {
			`"A": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Namespace": "Holdfast", "MetricName": "X"}},
			 "B": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": [{"Expression": "a + b"},
			   {"MetricStat": {"Metric": {"Namespace": "AWS/SQS", "MetricName": "a"}}}, {"MetricStat": {"Metric": {"Namespace": "Holdfast", "MetricName": "X"}}}]}}`,
			3*0.10 + 0.30,
		},
		"Lambda polls an idle queue": {`"S": {"Type": "AWS::Lambda::EventSourceMapping"}`, 5 * 730 * 180 * 0.0000004},
		"interface endpoints cost by zone, those of gateways nothing": {
			`"A": {"Type": "AWS::EC2::VPCEndpoint", "Properties": {"VpcEndpointType": "Interface", "SubnetIds": ["a", "b"]}},
			 "B": {"Type": "AWS::EC2::VPCEndpoint", "Properties": {"VpcEndpointType": "Gateway", "RouteTableIds": ["a"]}}`,
			2 * 730 * 0.01,
		},
	} {
		lines, got, err := price.Idle(l, parsed(t, c.resources))
		if err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got $%v (%v), %v; want $%v", name, got, lines, err, c.want)
		}
	}
	if _, _, err := price.Idle(l, parsed(t, `"X": {"Type": "AWS::Neptune::DBCluster"}`)); err == nil || !strings.Contains(err.Error(), "AWS::Neptune::DBCluster") {
		t.Errorf("got error %v, want one that names the resource that nobody thought about", err)
	}
}
