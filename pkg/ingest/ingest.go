// Package ingest turns what was submitted into one immutable text in UTF-8: what every offset of every finding counts
// in.
//
// It may decide: what format and encoding a file has, and that it holds no text that can be read. Such an error is
// permanent: the same bytes never read better the next time. That ctx ended, or that reading took too long, is not.
// It may not: change a plain text beyond its encoding and its line ends, guess where a guess could be wrong, or do I/O
// but for the cache of the compiled reader of PDF.
package ingest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/pkg/ingest/unread"
)

// Limit is the largest source that is read, in bytes, and TextLimit the largest text.
const (
	Limit     = 64 << 20
	TextLimit = 32 << 20
)

// The reasons why a source is refused. Each error wraps one of them and says what to do.
var (
	ErrTooLarge  = unread.ErrTooLarge
	ErrFormat    = unread.ErrFormat
	ErrDamaged   = unread.ErrDamaged
	ErrEncrypted = unread.ErrEncrypted
	ErrEncoding  = unread.ErrEncoding
	ErrNoText    = unread.ErrNoText
)

// text reads plain text: UTF-8, UTF-16 (with or without a byte order mark) or Windows-1252. CRLF becomes LF, once;
// everything else stays as it is. The result is valid UTF-8 without NUL and without replacement characters.
func text(source []byte, limit int) (string, error) {
	if err := refused(source); err != nil {
		return "", err
	}
	if len(source) > limit {
		return "", fmt.Errorf("%w: it has %d MB of text, the limit is %d MB; split it into several documents", ErrTooLarge, len(source)>>20, limit>>20)
	}
	text, err := decode(source)
	if err != nil {
		return "", err
	}
	if err := checkCharacters(text); err != nil {
		return "", err
	}
	if !hasText(text) {
		return "", fmt.Errorf("%w: the file is empty, or holds nothing but white space; check that it is the right file", ErrNoText)
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), nil
}

// strayControls is how many control characters a text may hold for each thousand characters: old exports carry a few
// (form feeds and tabs are not counted), binary data carries many.
const strayControls = 2

// checkCharacters refuses what no prompt and no report should carry: NUL, replacement characters, binary data.
func checkCharacters(text string) error {
	controls, characters := 0, 0
	for at, c := range text {
		characters++
		switch {
		case c == 0:
			return fmt.Errorf("%w: there is a NUL in line %d, so this is binary data; "+supported+"; save the document as one of these", ErrFormat, line(text, at))
		case c == utf8.RuneError:
			return fmt.Errorf("%w: there is a replacement character (U+FFFD) in line %d, so an earlier conversion lost what stood there; convert the original again, or correct that line", ErrEncoding, line(text, at))
		case unicode.IsControl(c) && !strings.ContainsRune("\t\n\v\f\r", c):
			controls++
		}
	}
	if controls > 0 && controls*1000 > strayControls*characters {
		return fmt.Errorf("%w: %d of its %d characters are control characters, so this is binary data; "+supported+"; save the document as one of these", ErrFormat, controls, characters)
	}
	return nil
}

// hasText says that there is anything to read: more than spaces and characters without a glyph.
func hasText(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.IsSpace(c) && !unicode.IsControl(c) && !unicode.Is(unicode.Cf, c)
	})
}

// line is the number of the line that the byte at is in, from 1.
func line(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }
