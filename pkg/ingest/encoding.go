package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

const (
	bomUTF8    = "\xEF\xBB\xBF"
	bomUTF16LE = "\xFF\xFE"
	bomUTF16BE = "\xFE\xFF"
	bomUTF32LE = "\xFF\xFE\x00\x00"
	bomUTF32BE = "\x00\x00\xFE\xFF"
)

const saveAsUTF8 = "save it as plain text in UTF-8 and submit that"

// decode is the source in UTF-8, by the byte order mark, else the pattern of NULs, else whether it is UTF-8, else as
// Windows-1252 if it looks like it.
func decode(source []byte) (string, error) {
	has := func(mark string) bool { return bytes.HasPrefix(source, []byte(mark)) }
	switch {
	case has(bomUTF32LE), has(bomUTF32BE):
		return "", fmt.Errorf("%w: it begins like UTF-32, which is not read; %s", ErrEncoding, saveAsUTF8)
	case has(bomUTF8):
		return decodeUTF8(source[len(bomUTF8):])
	case has(bomUTF16LE):
		return decodeUTF16(source[len(bomUTF16LE):], binary.LittleEndian)
	case has(bomUTF16BE):
		return decodeUTF16(source[len(bomUTF16BE):], binary.BigEndian)
	}
	if order := nulPattern(source); order != nil {
		return decodeUTF16(source, order)
	}
	if utf8.Valid(source) {
		return string(source), nil
	}
	if wellFormed, broken := utf8Sequences(source); wellFormed >= broken {
		return decodeUTF8(source)
	}
	return decodeWindows1252(source)
}

// nulPattern is the byte order of UTF-16 without a mark: text of a Latin script has a NUL in every other byte, and
// never in the bytes between. nil if it does not look like that.
func nulPattern(source []byte) binary.ByteOrder {
	if len(source) < 2 || len(source)%2 != 0 {
		return nil
	}
	var nuls [2]int
	for i, b := range source {
		if b == 0 {
			nuls[i%2]++
		}
	}
	units := len(source) / 2
	switch {
	case nuls[0] == 0 && nuls[1]*2 > units:
		return binary.LittleEndian
	case nuls[1] == 0 && nuls[0]*2 > units:
		return binary.BigEndian
	}
	return nil
}

func decodeUTF8(source []byte) (string, error) {
	if utf8.Valid(source) {
		return string(source), nil
	}
	at := 0
	for at < len(source) {
		c, size := utf8.DecodeRune(source[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return "", fmt.Errorf("%w: it is UTF-8 but for line %d (byte %d), which is damaged; correct that line or convert the original again",
		ErrEncoding, bytes.Count(source[:at], []byte("\n"))+1, at)
}

// utf8Sequences counts the characters of two bytes and more that are well-formed, and the bytes that belong to none.
func utf8Sequences(source []byte) (wellFormed, broken int) {
	for at := 0; at < len(source); {
		c, size := utf8.DecodeRune(source[at:])
		switch {
		case c == utf8.RuneError && size == 1:
			broken++
		case size > 1:
			wellFormed++
		}
		at += size
	}
	return wellFormed, broken
}

func decodeUTF16(source []byte, order binary.ByteOrder) (string, error) {
	if len(source)%2 != 0 {
		return "", fmt.Errorf("%w: it is UTF-16 with half a character at its end, so it was cut; %s", ErrEncoding, saveAsUTF8)
	}
	units := make([]uint16, len(source)/2)
	for i := range units {
		units[i] = order.Uint16(source[2*i:])
	}
	text := make([]byte, 0, len(source))
	for i := 0; i < len(units); i++ {
		c := rune(units[i])
		if utf16.IsSurrogate(c) {
			low := rune(0)
			if i+1 < len(units) {
				low = rune(units[i+1])
			}
			if c = utf16.DecodeRune(c, low); c == utf8.RuneError {
				return "", fmt.Errorf("%w: it is UTF-16 but for character %d, which is damaged; %s", ErrEncoding, i, saveAsUTF8)
			}
			i++
		}
		text = utf8.AppendRune(text, c)
	}
	return string(text), nil
}

// decodeWindows1252 reads the source as Windows-1252 if it looks like text of a language written in it: none of the
// bytes that have no meaning there, and mostly ASCII. Cyrillic, Japanese or random bytes would otherwise become
// letters that nobody wrote.
func decodeWindows1252(source []byte) (string, error) {
	high := 0
	for _, b := range source {
		switch b {
		case 0x81, 0x8D, 0x8F, 0x90, 0x9D:
			return "", notRecognised()
		}
		if b >= 0x80 {
			high++
		}
	}
	if high > 8 && high*4 > len(source) {
		return "", notRecognised()
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(source)
	if err != nil {
		return "", fmt.Errorf("%w: %v; %s", ErrEncoding, err, saveAsUTF8)
	}
	return string(text), nil
}

func notRecognised() error {
	return fmt.Errorf("%w: it is none of UTF-8, UTF-16 and Windows-1252; %s", ErrEncoding, saveAsUTF8)
}
