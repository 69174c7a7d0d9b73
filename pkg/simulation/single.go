package simulation

import "runtime"

// Single lets this process use one processor. What happens between two parking points then happens in one order, and a
// world needs no other processor anyway: at any time one goroutine of it runs.
func Single() { runtime.GOMAXPROCS(1) }
