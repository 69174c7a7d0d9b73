package simulation

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// Single makes this process fit for worlds: one processor, and no garbage collection but between two worlds. What
// happens between two parking points then happens in one order, and a world needs no other processor anyway: at any
// time one goroutine of it runs. Only the runtime itself can still change that order: it makes way for another goroutine
// when one seems to run for 10 ms, which none does but on a machine that stalls. Such worlds are marked as disturbed.
func Single() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
}

// litter is how many events make a garbage collection worth while.
const litter = 40_000

var events int // since the last collection

// clean collects garbage between two worlds.
func clean(more int) {
	if events += more; events > litter {
		events = 0
		runtime.GC()
	}
}

// stall is how long a step takes that the runtime may have disturbed: a little less than what makes it do so.
const stall = 9 * time.Millisecond

// Used is the processor time that this process has used.
func Used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// realTime is the machine's, also inside of a bubble.
func realTime() time.Duration {
	var t syscall.Timeval
	_ = syscall.Gettimeofday(&t)
	return time.Duration(t.Nano())
}
