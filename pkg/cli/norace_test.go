//go:build !race

package cli

// longLine is how long a line of a document is tried.
const longLine = 5 << 20
