//go:build !race

package wiring_test

// stride is which of the port calls are taken: each.
const stride = 1
