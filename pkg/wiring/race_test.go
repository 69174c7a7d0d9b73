//go:build race

package wiring_test

// stride is which of the port calls are taken: one in 23, since the race detector is slow.
const stride = 23
