//go:build race

package cli

// The race detector makes SQLite slow: fewer kills, on less text.
const (
	longLine   = 1 << 20 // bytes of the line that must not stop anything
	killBytes  = 20_000  // of each document whose workers are killed
	killWrites = 8       // kills at a write
	killLines  = 8       // kills at a question
	lineStep   = 70      // lines of the ledger between two of them
	killsAtAll = 24      // at least, those in splits and finalizes included

	killPolicy = quickPolicy + "attempt_backoff: 200ms\n" // a chunk that is lost often waits less
)
