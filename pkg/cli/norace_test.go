//go:build !race

package cli

const (
	longLine   = 5 << 20 // bytes of the line that must not stop anything
	killBytes  = 84_000  // of each document whose workers are killed: all of it
	killWrites = 24      // kills at a write
	killLines  = 22      // kills at a question
	lineStep   = 75      // lines of the ledger between two of them
	killsAtAll = 50      // at least, those in splits and finalizes included

	killPolicy = quickPolicy
)
