// Package ingest turns what was submitted into one immutable text in UTF-8: what every offset of every finding counts
// in.
//
// It may decide: which encoding a file is in, and that a file holds no text that can be read. Every error it returns is
// permanent: the same bytes never read better the next time.
// It may not: change the text beyond its encoding and its line ends, guess where a guess could be wrong, or do I/O.
package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limit is the largest source that is read, in bytes.
const Limit = 32 << 20

// The reasons why a source is refused. Each error wraps one of them and says what to do.
var (
	ErrTooLarge = errors.New("too large")
	ErrFormat   = errors.New("not plain text")
	ErrEncoding = errors.New("encoding not recognised")
	ErrNoText   = errors.New("no text")
)

// Text reads a plain text file: UTF-8, UTF-16 (with or without a byte order mark) or Windows-1252. CRLF becomes LF, once;
// everything else stays as it is. The result is valid UTF-8 without NUL and without replacement characters. name is
// for the error.
func Text(name string, source []byte) (string, error) {
	text, err := read(source, Limit)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func read(source []byte, limit int) (string, error) {
	if len(source) > limit {
		return "", fmt.Errorf("%w: it has %d bytes, the limit is %d (%d MB); split it into several documents", ErrTooLarge, len(source), limit, limit>>20)
	}
	if format := knownFormat(source); format != "" {
		return "", fmt.Errorf("%w: %s is not read by this version; save it as plain text (UTF-8) and submit that", ErrFormat, format)
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

// formats are files that people submit as documents and that are not text, by how they begin.
var formats = []struct{ magic, name string }{
	{"%PDF-", "PDF"},
	{"PK\x03\x04", "DOCX (or another ZIP file)"},
	{"PK\x05\x06", "ZIP"},
	{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "the old Word format, or an encrypted Office file,"},
	{"{\\rtf", "RTF"},
}

// knownFormat names the format of a file that is not text; empty if it may be text.
func knownFormat(source []byte) string {
	begin := bytes.TrimLeft(bytes.TrimPrefix(source, []byte(bomUTF8)), " \t\r\n")
	for _, f := range formats {
		if bytes.HasPrefix(begin, []byte(f.magic)) {
			return f.name
		}
	}
	return ""
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
			return fmt.Errorf("%w: there is a NUL in line %d, so this is binary data; save the document as plain text (UTF-8)", ErrFormat, line(text, at))
		case c == utf8.RuneError:
			return fmt.Errorf("%w: there is a replacement character (U+FFFD) in line %d, so an earlier conversion lost what stood there; convert the original again, or correct that line", ErrEncoding, line(text, at))
		case unicode.IsControl(c) && !strings.ContainsRune("\t\n\v\f\r", c):
			controls++
		}
	}
	if controls > 0 && controls*1000 > strayControls*characters {
		return fmt.Errorf("%w: %d of its %d characters are control characters, so this is binary data; save the document as plain text (UTF-8)", ErrFormat, controls, characters)
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
