package main

import (
	"os"
	"testing"

	"holdfast/pkg/cli"
)

// TestMain is the holdfast command where an incident started it as one.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// writer prints through the test, so that it is seen where it failed.
type writer struct{ t *testing.T }

func (w writer) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}

func TestIncidents(t *testing.T) {
	for name, run := range incidents {
		t.Run(name, func(t *testing.T) { run(t, &printer{out: writer{t}}, false) })
	}
}
