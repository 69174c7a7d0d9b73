// Incident replays three incidents that were written up in public, each with the system that had it and with Holdfast,
// on the same work:
//
//	incident poller     a row that cannot finish behind a poller: a model billed every minute, for ever
//	incident pipeline   3,248 calls about one contract, 5 % of which fail, while workers die: a chunk silently missing
//	incident media      four corrupt files, a hard timeout, a reaper and a requeue: hundreds of failures a day, for ever
//
// An incident is a test that prints: `go test` runs it small, this command in full. Every number that a table is about
// is checked; the last line says so. README.md has what each assumes.
package main

import (
	"fmt"
	"os"
	"testing"

	"holdfast/pkg/cli"
)

// asProgram, set, makes this program the holdfast command: the worker processes of a run are this program again.
const asProgram = "HOLDFAST_INCIDENT_PROGRAM"

// asOther is what this program does where an incident started it as another: the decoder, or the holdfast command.
func asOther() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "decode":
		os.Exit(decodeMain(os.Args[2]))
	case os.Getenv(asProgram) != "":
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
}

// incident is one of them; full says that it may take its time.
type incident func(t *testing.T, p *printer, full bool)

var incidents = map[string]incident{}

func main() {
	asOther()
	name := ""
	if len(os.Args) == 2 {
		name = os.Args[1]
	}
	run, known := incidents[name]
	if !known {
		fmt.Fprintln(os.Stderr, "incident: name one of: poller, pipeline, media")
		os.Exit(2)
	}
	all := func(_, _ string) (bool, error) { return true, nil }
	test := testing.InternalTest{Name: name, F: func(t *testing.T) {
		p := &printer{out: os.Stdout}
		if t.Run(name, func(t *testing.T) { run(t, p, true) }) { // with all that it cleans up
			p.say("Every number that a table is about was checked in this run, and holds.")
			os.Exit(0)
		}
	}}
	testing.Main(all, []testing.InternalTest{test}, nil, nil) // virtual time (testing/synctest) is for tests alone; it exits
}
