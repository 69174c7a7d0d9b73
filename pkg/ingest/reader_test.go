package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/pipeline"
)

// testReader keeps the compiled reader of PDF where the program keeps it: compiling takes seconds.
func testReader(t testing.TB) *Reader {
	t.Helper()
	cfg := Config{Clock: pipeline.NewRealClock()}
	if dir, err := os.UserCacheDir(); err == nil {
		cfg.Cache = filepath.Join(dir, "holdfast")
	}
	return New(cfg)
}

func mustRead(t testing.TB, name string, source []byte) pipeline.Document {
	t.Helper()
	d, err := testReader(t).Read(t.Context(), name, source)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func refuses(t *testing.T, source []byte, want error, says ...string) {
	t.Helper()
	d, err := testReader(t).Read(t.Context(), "file.bin", source)
	if !errors.Is(err, want) || d.Text != "" {
		t.Fatalf("got %d bytes of text and error %v, want %v", len(d.Text), err, want)
	}
	for _, words := range append(says, "file.bin: ") {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("got %q, want %q in it", err, words)
		}
	}
}

func TestWhatAFileIsIsToldByItsContent(t *testing.T) {
	word := ingesttest.Docx{Body: ingesttest.Paragraphs("The cap is ten.")}.Bytes()
	pdf := ingesttest.PDF{Pages: [][]string{{"The cap is ten."}}}.Bytes()
	for _, c := range []struct {
		name   string
		source []byte
		format string
	}{
		{"a DOCX named .txt", word, "docx"},
		{"a PDF named .docx", pdf, "pdf"},
		{"a PDF behind lines of a mail gateway", append([]byte("X-Scan: clean\n\n"), pdf...), "pdf"},
		{"a text named .pdf", []byte("The cap is ten.\n"), "text"},
		{"a text about %PDF-1.7 files", []byte("The cap is ten. A file begins with %PDF-1.7.\n"), "text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mustRead(t, "any.name", c.source)
			if d.Origin.Format != c.format || !strings.Contains(d.Text, "The cap is ten.") {
				t.Errorf("got %s: %q, want %s with the sentence", d.Origin.Format, d.Text, c.format)
			}
			if d.Origin.Document != hash(d.Text) {
				t.Errorf("got the map of text %s, want of %s", d.Origin.Document, hash(d.Text))
			}
		})
	}
}

func TestFilesThatAreNotReadAreRefusedWithWhatToDo(t *testing.T) {
	zip := func(names ...string) []byte {
		var files []ingesttest.File
		for _, name := range names {
			files = append(files, ingesttest.File{Name: name, Body: strings.NewReader("x")})
		}
		return ingesttest.Zip(files...)
	}
	for _, c := range []struct {
		name   string
		source []byte
		want   error
		says   string
	}{
		{"an encrypted DOCX", ingesttest.Compound("EncryptionInfo", "EncryptedPackage"), ErrEncrypted, "take the password off"},
		{"an old .doc", ingesttest.Compound("1Table", "WordDocument"), ErrFormat, "save it as DOCX"},
		{"an old .xls", ingesttest.Compound("Workbook"), ErrFormat, "PDF"},
		{"a mail of Outlook", ingesttest.Compound("__nameid"), ErrFormat, "Outlook"},
		{"an Excel workbook", zip("[Content_Types].xml", "xl/workbook.xml"), ErrFormat, "Excel"},
		{"a presentation", zip("[Content_Types].xml", "ppt/presentation.xml"), ErrFormat, "PowerPoint"},
		{"an OpenDocument text", zip("mimetype", "content.xml"), ErrFormat, "OpenDocument"},
		{"a ZIP of documents", zip("contract.docx", "annex.docx"), ErrFormat, "take the document out"},
		{"a cut DOCX", ingesttest.Docx{Body: ingesttest.Paragraphs("x")}.Bytes()[:300], ErrDamaged, "save it again with Word"},
		{"a PDF that is only its first line", []byte("%PDF-1.7\n1 0 obj"), ErrDamaged, "cut"},
		{"a picture", []byte("\x89PNG\r\n\x1a\n\x00\x00"), ErrFormat, "OCR"},
		{"unknown binary data", []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03"), ErrFormat, "DOCX, PDF and plain text"},
		{"a DOCX without text", ingesttest.Docx{Body: ingesttest.Paragraphs(" ")}.Bytes(), ErrNoText, "right file"},
		{"a DOCX of pictures", ingesttest.Docx{Body: "<w:p/>", Others: map[string]string{"word/media/image1.png": "x"}}.Bytes(), ErrNoText, "OCR"},
		{"70 MB", make([]byte, 70<<20), ErrTooLarge, "64 MB"},
	} {
		t.Run(c.name, func(t *testing.T) { refuses(t, c.source, c.want, c.says) })
	}
}

func TestAContextThatEndsIsNoFaultOfTheDocument(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(pipeline.ErrDraining)
	body := ingesttest.Paragraphs(strings.Split(strings.Repeat("x ", 2000), " ")...)
	for name, source := range map[string][]byte{
		"docx": ingesttest.Docx{Body: body}.Bytes(),
		"pdf":  ingesttest.PDF{Pages: [][]string{{"x"}}}.Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := testReader(t).Read(ctx, "x", source); !errors.Is(err, pipeline.ErrDraining) {
				t.Errorf("got %v, want %v", err, pipeline.ErrDraining)
			}
		})
	}
}
