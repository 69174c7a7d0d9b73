//go:build race

package cli

// longLine is how long a line of a document is tried: the race detector makes five megabytes slow.
const longLine = 1 << 20
