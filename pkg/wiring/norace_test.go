//go:build !race

package wiring_test

const (
	stride     = 1   // of the port calls that are taken: each
	seeds      = 100 // of chaos
	spendSeeds = 15  // of money
)
