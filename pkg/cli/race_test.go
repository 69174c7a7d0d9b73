//go:build race

package cli

// The race detector makes SQLite slow: the same kills on less text.
const (
	longLine  = 1 << 20 // bytes of the line that must not stop anything
	killBytes = 20_000  // of each document whose workers are killed
	killWrite = 10      // the first write of a process that kills it
	killEach  = 1       // so many writes later for each further kill
	killLines = 30      // of the ledger between two kills
)
