package ingest

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/pipeline"
)

// I-08 is in TestOneTextInEveryEncoding and TestRefused; here is that it holds behind the one door that all formats use.
func TestI08TextThatIsNotUTF8(t *testing.T) {
	const contract = "\u201cCap\u201d means \u00a7 4 \u2014 ten.\n"
	want := mustRead(t, "a.txt", []byte(contract))
	for name, source := range map[string][]byte{
		"UTF-8 with a mark": []byte(bomUTF8 + contract),
		"UTF-16LE":          append([]byte(bomUTF16LE), asUTF16(contract, binary.LittleEndian)...),
		"UTF-16BE":          append([]byte(bomUTF16BE), asUTF16(contract, binary.BigEndian)...),
		"Windows-1252":      asWindows1252(t, contract),
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustRead(t, "a.txt", source); got.Text != want.Text || got.Origin.Document != want.Origin.Document {
				t.Errorf("got %q, want %q", got.Text, want.Text)
			}
		})
	}
	refuses(t, randomBytes(5000), ErrEncoding, "UTF-8")
}

// I-09: reading has a time of its own; what takes longer is no answer about the document, so the attempt is used up.
func TestI09ReadingHasATimeOfItsOwn(t *testing.T) {
	r := testReader(t)
	r.cfg.Timeout = 300 * time.Millisecond
	_, err := r.Read(t.Context(), "a.pdf", ingesttest.PDF{Pages: [][]string{{"x"}}, Endless: true}.Bytes())
	if !errors.Is(err, pipeline.ErrTimedOut) || !strings.HasPrefix(err.Error(), "a.pdf: reading it took longer than 300ms") {
		t.Errorf("got %v, want that it took too long", err)
	}
}

// an offset is bytes into the text that is stored; whoever counts otherwise can convert it, because that text is
// whole and valid UTF-8. The signs before the clause are those on which counts differ.
func TestR02AnOffsetIsBytesIntoTheStoredText(t *testing.T) {
	before := "Caf\u00e9, cafe\u0301, \U0001F469\u200d\u2696\ufe0f, \u5951\u7d04, \u05d7\u05d5\u05d6\u05d4, a\u00a0b, soft\u00adly."
	clause := "The cap is ten."
	for name, source := range map[string][]byte{
		"text": []byte(before + "\r\n" + clause + "\r\n"),
		"docx": ingesttest.Docx{Body: ingesttest.Paragraphs(before) + `<w:tbl><w:tr><w:tc>` + ingesttest.Paragraphs("a") + `</w:tc><w:tc>` + ingesttest.Paragraphs(clause) + `</w:tc></w:tr></w:tbl>`}.Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, name, source)
			start := strings.Index(d.Text, clause)
			units := utf16.Encode([]rune(d.Text))
			at := len(utf16.Encode([]rune(d.Text[:start])))
			if got := string(utf16.Decode(units[at : at+len(clause)])); got != clause {
				t.Errorf("got %q in UTF-16 units, want %q", got, clause)
			}
			if !strings.HasPrefix(d.Text, before) {
				t.Errorf("got %q, want %q at the beginning, unchanged", d.Text, before)
			}
			if want := map[string]string{"text": "", "docx": "paragraph 3"}[name]; d.Origin.Where(start) != want {
				t.Errorf("got place %q, want %q", d.Origin.Where(start), want)
			}
		})
	}
}
