package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

func sample(t testing.TB) string {
	body, err := os.ReadFile("../pipelines/documents/cuad-worldwide-reseller.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func asUTF16(text string, order binary.AppendByteOrder) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

func asWindows1252(t testing.TB, text string) []byte {
	out, err := charmap.Windows1252.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// One contract in every encoding that is read is one text: so are its chunks and the offsets of its findings.
func TestCaseI08Encodings(t *testing.T) {
	want := strings.ReplaceAll(sample(t), `"Agreement"`, "\u201cAgreement\u201d") + "\u00a7 7 \u2014 \u2026 caf\u00e9 \u2022\n"
	for _, c := range []struct {
		name   string
		source []byte
	}{
		{"UTF-8", []byte(want)},
		{"UTF-8 with a mark", []byte(bomUTF8 + want)},
		{"UTF-16LE with a mark", append([]byte(bomUTF16LE), asUTF16(want, binary.LittleEndian)...)},
		{"UTF-16BE with a mark", append([]byte(bomUTF16BE), asUTF16(want, binary.BigEndian)...)},
		{"UTF-16LE without a mark", asUTF16(want, binary.LittleEndian)},
		{"UTF-16BE without a mark", asUTF16(want, binary.BigEndian)},
		{"Windows-1252", asWindows1252(t, want)},
		{"UTF-8 with CRLF", []byte(strings.ReplaceAll(want, "\n", "\r\n"))},
		{"UTF-16LE with CRLF", asUTF16(strings.ReplaceAll(want, "\n", "\r\n"), binary.LittleEndian)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readText(t, "contract.txt", c.source)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("got another text: %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

func TestVerbatim(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"one character is a document", "x", "x"},
		{"one character in UTF-16", "x\x00", "x"},
		{"an umlaut in Windows-1252", "\xfc", "\u00fc"},
		{"soft hyphens, zero-width spaces and NBSP stay", "a\u00adb\u200bc\u00a0d", "a\u00adb\u200bc\u00a0d"},
		{"emoji with joiners, CJK and Hebrew stay", "\U0001F469\u200d\U0001F4BB \u5951\u7d04 \u05d7\u05d5\u05d6\u05d4", "\U0001F469\u200d\U0001F4BB \u5951\u7d04 \u05d7\u05d5\u05d6\u05d4"},
		{"composed and decomposed accents stay apart", "\u00e9 e\u0301", "\u00e9 e\u0301"},
		{"a lone CR stays, CRLF is folded once", "a\rb\r\nc\r\r\nd", "a\rb\nc\r\nd"},
		{"white space at both ends stays", "\n\n  text \f\n", "\n\n  text \f\n"},
		{"a second mark is text", bomUTF8 + bomUTF8 + "x", bomUTF8 + "x"},
		{"one stray control character in a long text stays", strings.Repeat("word ", 200) + "\x1a", strings.Repeat("word ", 200) + "\x1a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readText(t, "x.txt", []byte(c.source))
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func randomBytes(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.UintN(256))
	}
	return out
}

func TestRefused(t *testing.T) {
	shiftJIS := []byte("\x96\x7b\x8c\x5f\x96\xf1\x82\xcd\x81\x41\x8d\x62\x82\xc6\x89\xb3\x82\xcc\x8a\xd4\x82\xc5\x92\xf7\x8c\x8b\x82\xb3\x82\xea\x82\xe9\x81\x42")
	koi8 := []byte("\xe4\xcf\xc7\xcf\xd7\xcf\xd2 \xda\xc1\xcb\xcc\xc0\xde\xc5\xce \xcd\xc5\xd6\xc4\xd5 \xd3\xd4\xcf\xd2\xcf\xce\xc1\xcd\xc9")
	for _, c := range []struct {
		name   string
		source []byte
		want   error
		says   string
	}{
		{"an empty file", nil, ErrNoText, "right file"},
		{"white space only", []byte(" \n\t\r\n\u00a0\u200b\ufeff"), ErrNoText, "white space"},
		{"white space in UTF-16", asUTF16(" \n \n", binary.LittleEndian), ErrNoText, "white space"},
		{"nothing but a mark", []byte(bomUTF8), ErrNoText, "right file"},
		{"an encrypted Office file", []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\x00"), ErrFormat, "Office format"},
		{"RTF", []byte(`{\rtf1\ansi text}`), ErrFormat, "RTF"},
		{"a NUL in a text", []byte("This Agreement\x00 is made\n"), ErrFormat, "NUL in line 1"},
		{"control characters", bytes.Repeat([]byte("a\x01b\x02"), 50), ErrFormat, "control characters"},
		{"random bytes", randomBytes(4096), ErrEncoding, "UTF-8"},
		{"random bytes of odd length", randomBytes(999), ErrEncoding, "UTF-8"},
		{"Shift-JIS", shiftJIS, ErrEncoding, "none of UTF-8"},
		{"Cyrillic in one byte", koi8, ErrEncoding, "none of UTF-8"},
		{"UTF-8 with one damaged byte", []byte("\u201cAgreement\u201d\nof \xff the \u201cparties\u201d"), ErrEncoding, "line 2"},
		{"UTF-8 cut in a character", []byte(bomUTF8 + "a\n\u201c"[:4]), ErrEncoding, "damaged"},
		{"text with a replacement character", []byte("a\nb \ufffd c"), ErrEncoding, "line 2"},
		{"UTF-16 cut in a character", []byte(bomUTF16LE + "a\x00b"), ErrEncoding, "cut"},
		{"UTF-16 with half a pair", []byte(bomUTF16LE + "a\x00\x3d\xd8b\x00"), ErrEncoding, "character 1"},
		{"UTF-32", []byte(bomUTF32LE + "a\x00\x00\x00"), ErrEncoding, "UTF-32"},
		{"50 MB", make([]byte, 50<<20), ErrTooLarge, "32 MB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readText(t, "file.txt", c.source)
			if !errors.Is(err, c.want) {
				t.Fatalf("got error %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "file.txt: ") {
				t.Errorf("got %q, want the name and %q in it", err, c.says)
			}
			if got != "" {
				t.Errorf("got a text of %d bytes beside the error", len(got))
			}
		})
	}
}

func TestLimit(t *testing.T) {
	t.Run("a source of exactly the limit is read", func(t *testing.T) {
		if _, err := text([]byte("1234"), 4); err != nil {
			t.Error(err)
		}
	})
	t.Run("one byte more is refused", func(t *testing.T) {
		if _, err := text([]byte("12345"), 4); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v, want %v", err, ErrTooLarge)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "x", "x\x00", "\x00x", bomUTF16BE + "\x00x", bomUTF8 + "\u201c", "\xfc\x93\r\n", "a\ufffd", "%PDF-", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		text, err := text(source, TextLimit)
		if err != nil {
			for _, known := range []error{ErrTooLarge, ErrFormat, ErrEncoding, ErrNoText} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("an error without a reason: %v", err)
		}
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\ufffd") || strings.TrimSpace(text) == "" {
			t.Fatalf("got %q, want text in UTF-8 without NUL or replacement character", text)
		}
	})
}

// readText reads a source as a worker does.
func readText(t *testing.T, name string, source []byte) (string, error) {
	d, err := testReader(t).Read(t.Context(), name, source)
	return d.Text, err
}
