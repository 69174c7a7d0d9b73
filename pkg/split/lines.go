package split

import (
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// lines makes every line that holds more than white space a chunk. Blank lines belong to the chunk before them, those
// at the beginning to the first, so that cores tile the text.
func lines(text string, most int) ([]pipeline.Chunk, error) {
	var chunks []pipeline.Chunk
	at := 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		switch n := len(chunks); {
		case strings.TrimSpace(line) == "":
			if n > 0 {
				chunks[n-1].End = end
			}
		case n == most:
			return nil, fmt.Errorf("%w: line after line, %d chunks cover %d of %d bytes; split the document, or raise max_chunks of the pipeline",
				ErrTooManyChunks, n, at, len(text))
		default:
			begin := at
			if n == 0 {
				begin = 0
			}
			chunks = append(chunks, pipeline.Chunk{Index: n, Context: begin, Start: begin, End: end, Tokens: pipeline.EstimateTokens(line)})
		}
		at = end
	}
	if len(chunks) == 0 {
		return nil, fmt.Errorf("there is no line to work on: all are blank")
	}
	return chunks, nil
}
