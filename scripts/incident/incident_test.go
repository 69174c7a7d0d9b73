package main

import (
	"os"
	"testing"
)

// TestMain is the decoder or the holdfast command where an incident started it as one.
func TestMain(m *testing.M) {
	asOther()
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
