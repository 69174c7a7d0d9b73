//go:build race

package wiring_test

// The race detector is slow.
const (
	stride     = 23 // of the port calls that are taken: one in so many
	seeds      = 5  // of chaos
	spendSeeds = 2  // of money
)
