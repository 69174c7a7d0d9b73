//go:build !race

package api_test

// A review of the size that answers have to be made for.
const (
	reviewBytes = 135_000
	reviewCells = 3300
)
