package dynamostore

import (
	"fmt"

	"holdfast/pkg/pipeline"
)

// FormatKey is the column of a job's or task's row with the number of its format.
const FormatKey = "format"

// known says that a row is of a format that this program knows: it is part of the condition of every change. A row
// without a number is of the first.
func known() clause { return atMost(FormatKey, pipeline.FormatVersion) }

// isNewer says that a newer version wrote the row.
func isNewer(row item) bool { return numberIn(row, FormatKey) > pipeline.FormatVersion }

// newerJob is the error about a job that a newer version wrote; nil for all others.
func newerJob(row item) error {
	if !isNewer(row) {
		return nil
	}
	return fmt.Errorf("it has format %d, and this program knows %d: %w; it is left alone, update what runs this",
		numberIn(row, FormatKey), pipeline.FormatVersion, pipeline.ErrNewer)
}
