//go:build race

package api_test

// The race detector makes the offline model slow: less text.
const (
	reviewBytes = 13_500
	reviewCells = 330
)
