package stacks_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/cdk/price"
	"holdfast/pkg/config"
)

// A contract of the size that the README speaks of, and the estimate that its figures rest on.
const (
	contractChunks = 19 // pkg/pipelines/documents/cuad-worldwide-reseller.txt
	answerSeconds  = 5  // of a call
)

// contractStages are the calls of each stage of contract-review, in their order.
var contractStages = []int{1, 12, 88, 11, 4}

// What a million calls ask of tables and queues: make bench-aws counts it, and the README tells the same.
const perMillionCalls = 1.04

func TestWhatAWSTakesForOneContract(t *testing.T) {
	list, err := price.Read()
	if err != nil {
		t.Fatal(err)
	}
	d := deployed(t)
	calls, seconds := 0, 0
	for _, n := range contractStages {
		calls += n
		seconds += (n + d.settings.InFlight - 1) / d.settings.InFlight * answerSeconds // as many at once as a process has in flight
	}
	gb := functions(d)[config.Work].Number("MemorySize") / 1024
	functions := float64(contractChunks*seconds) * gb * list.Prices["lambda-gb-second-arm64"]
	store := float64(contractChunks*calls) * perMillionCalls / 1e6
	t.Logf("%d chunks x %d calls, %d s each: Lambda $%.4f, tables and queues $%.4f", contractChunks, calls, seconds, functions, store)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{
		fmt.Sprintf("%d chunks x %d calls", contractChunks, calls), fmt.Sprintf("%d s x %.0f MB", seconds, gb*1024),
		fmt.Sprintf("$%.4f for Lambda", functions), fmt.Sprintf("$%.4f for tables and queues", store),
	} {
		if !strings.Contains(string(readme), says) {
			t.Errorf("the README does not say %q", says)
		}
	}
}
