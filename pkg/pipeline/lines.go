package pipeline

import (
	"fmt"
	"strings"
)

// CheckLines refuses a source of which a line would not be a line of the file, byte for byte but for its end, or of which
// there are more than the definition takes: a name in another encoding would become the name of something else. read is
// what ingest made of the source; of a format that is no plain text only the number counts.
func (c Chunking) CheckLines(source []byte, read Document) error {
	if !c.Lines {
		return nil
	}
	if format := read.Origin.Format; format == "" || format == "text" {
		if n := otherLine(source, read.Text); n > 0 {
			return fmt.Errorf("line %d is not UTF-8, so the work would be on another text than the file holds; save the list as UTF-8, and give files whose names are not UTF-8 other names", n)
		}
	}
	lines := 0
	for line := range strings.Lines(read.Text) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines > c.MaxChunks {
		return fmt.Errorf("it has %s lines to work on, and %s is the limit of one job; split it into several files", Count(lines), Count(c.MaxChunks))
	}
	return nil
}

// otherLine is the number of the first line of the source that reads differently in the text, from 1; 0 if there is
// none. A byte order mark is no part of a line, nor is a CR before its end.
func otherLine(source []byte, text string) int {
	plain := strings.ReplaceAll(strings.TrimPrefix(string(source), "\xEF\xBB\xBF"), "\r\n", "\n")
	if plain == text {
		return 0
	}
	n := 1
	for at := 0; at < min(len(plain), len(text)) && plain[at] == text[at]; at++ {
		if plain[at] == '\n' {
			n++
		}
	}
	return n
}
