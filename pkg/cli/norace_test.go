//go:build !race

package cli

const (
	longLine  = 5 << 20 // bytes of the line that must not stop anything
	killBytes = 84_000  // of each document whose workers are killed: all of it
	killWrite = 50      // the first write of a process that kills it
	killEach  = 5       // so many writes later for each further kill
	killLines = 75      // of the ledger between two kills
)
