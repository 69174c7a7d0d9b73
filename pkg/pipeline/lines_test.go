package pipeline

import (
	"strings"
	"testing"
)

func TestALineOfTheTextIsALineOfTheFile(t *testing.T) {
	c := Chunking{Lines: true, MaxChunks: 3}
	for _, test := range []struct {
		name         string
		chunking     Chunking
		source, text string
		format       string
		want         string
	}{
		{"UTF-8", c, "café\nb\n", "café\nb\n", "text", ""},
		{"with a mark and CRLF", c, "\xEF\xBB\xBFa\r\nb\r\n", "a\nb\n", "text", ""},
		{"Windows-1252 in the second line", c, "a\ncaf\xE9\nb\n", "a\ncafé\nb\n", "text", "line 2 is not UTF-8"},
		{"UTF-16 without a mark", c, "a\x00\n\x00b\x00", "a\nb", "text", "line 1 is not UTF-8"},
		{"of a document the text counts", c, "PK\x03\x04\xE9", "a\nb\n", "docx", ""},
		{"a text that is no list", Chunking{MaxChunks: 1}, "caf\xE9\n\n\nb", "café\n\n\nb", "text", ""},
		{"as many as are taken, and blank ones", c, "a\n\nb\n \nc\n", "a\n\nb\n \nc\n", "text", ""},
		{"one too many", c, "a\nb\nc\nd", "a\nb\nc\nd", "text", "4 lines to work on, and 3 is the limit"},
		{"one too many in a document", c, "%PDF", "a\nb\nc\nd", "pdf", "4 lines to work on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.chunking.CheckLines([]byte(test.source), Document{Text: test.text, Origin: Origin{Format: test.format}})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
