package docx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/ingest/unread"
)

const documentBegin = `<w:document xmlns:w="` + ingesttest.Transitional + `"><w:body>`

// package with is a package of the document part, and more.
func packageWith(document io.Reader, more ...ingesttest.File) []byte {
	files := []ingesttest.File{
		{Name: "[Content_Types].xml", Body: strings.NewReader(`<Types/>`)},
		{Name: "_rels/.rels", Body: strings.NewReader(`<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document.xml"/></Relationships>`)},
		{Name: "word/document.xml", Body: document},
	}
	return ingesttest.Zip(append(files, more...)...)
}

func refuses(t *testing.T, source []byte, want error, says string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d, err := Read(t.Context(), source, DefaultLimits)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) || d.Text != "" {
		t.Errorf("got %d bytes of text and error %v, want %v with %q", len(d.Text), err, want, says)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 300<<20 {
		t.Errorf("got %d MB more memory, want at most 300", grown>>20)
	}
}

// I-07: a small file that expands to much is refused by the bytes that come out of it, not by what its headers say.
func TestI07DecompressionBombsAreRefused(t *testing.T) {
	const end = `</w:body></w:document>`
	air := func() []byte {
		return packageWith(ingesttest.Repeat(documentBegin, strings.Repeat(" ", 1<<20), 16, end))
	}
	for name, change := range map[string]func(*Limits){
		"a part that is too large":             func(l *Limits) { l.Part, l.Ratio = 8<<20, 1<<40 },
		"a part that is nothing but air":       func(l *Limits) { l.Ratio = 300 },
		"parts that are too large together":    func(l *Limits) { l.Total, l.Ratio = 8<<20, 1<<40 },
		"a part that is larger than its limit": func(l *Limits) { l.Part = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits
			change(&limits)
			if _, err := Read(t.Context(), air(), limits); !errors.Is(err, unread.ErrTooLarge) || !strings.Contains(err.Error(), "expands beyond the limit") {
				t.Errorf("got %v, want that it expands beyond the limit", err)
			}
		})
	}
	t.Run("a header that declares 1 KB", func(t *testing.T) {
		body := ingesttest.Repeat(documentBegin, strings.Repeat(" ", 1<<20), 16, end)
		refuses(t, ingesttest.Zip(
			ingesttest.File{Name: "[Content_Types].xml", Body: strings.NewReader(`<Types/>`)},
			ingesttest.File{Name: "_rels/.rels", Body: strings.NewReader(`<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document.xml"/></Relationships>`)},
			ingesttest.File{Name: "word/document.xml", Body: body, Declared: 1 << 10},
		), unread.ErrDamaged, "cannot be expanded")
	})
	t.Run("many parts, each under the limit", func(t *testing.T) {
		rels, body := "", documentBegin+`<w:sectPr>`
		var parts []ingesttest.File
		for i := range 200 {
			rels += fmt.Sprintf(`<Relationship Id="h%d" Type="x/header" Target="header%d.xml"/>`, i, i)
			body += fmt.Sprintf(`<w:headerReference id="h%d"/>`, i)
			parts = append(parts, ingesttest.File{Name: fmt.Sprintf("word/header%d.xml", i), Body: ingesttest.Repeat(`<w:hdr xmlns:w="`+ingesttest.Transitional+`">`, strings.Repeat(" ", 1023)+"\n", 100, `</w:hdr>`)})
		}
		parts = append(parts, ingesttest.File{Name: "word/_rels/document.xml.rels", Body: strings.NewReader(`<Relationships>` + rels + `</Relationships>`)})
		limits := DefaultLimits
		limits.Total = 8 << 20
		if _, err := Read(t.Context(), packageWith(strings.NewReader(body+`</w:sectPr>`+end), parts...), limits); !errors.Is(err, unread.ErrTooLarge) || !strings.Contains(err.Error(), "together") {
			t.Errorf("got %v, want that they are too large together", err)
		}
	})
	t.Run("70,000 entries", func(t *testing.T) {
		more := make([]ingesttest.File, 70_000)
		for i := range more {
			more[i] = ingesttest.File{Name: fmt.Sprintf("word/media/%d.png", i), Body: strings.NewReader("")}
		}
		refuses(t, packageWith(strings.NewReader(documentBegin+end), more...), unread.ErrTooLarge, "files")
	})
	t.Run("elements within each other", func(t *testing.T) {
		refuses(t, packageWith(ingesttest.Repeat(documentBegin, `<w:tbl><w:tr><w:tc>`, 50_000, "")), unread.ErrTooLarge, "deep")
	})
	t.Run("elements within each other where nobody looks", func(t *testing.T) {
		refuses(t, packageWith(ingesttest.Repeat(documentBegin+`<w:tblPr>`, `<w:x>`, 50_000, "")), unread.ErrTooLarge, "deep")
	})
	t.Run("entities that expand", func(t *testing.T) {
		refuses(t, packageWith(strings.NewReader(`<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>`+documentBegin+`<w:p><w:r><w:t>&b;</w:t></w:r></w:p>`+end)), unread.ErrDamaged, "document type")
	})
	t.Run("entities of nowhere", func(t *testing.T) {
		refuses(t, packageWith(strings.NewReader(documentBegin+`<w:p><w:r><w:t>&b;</w:t></w:r></w:p>`+end)), unread.ErrDamaged, "no XML")
	})
	t.Run("a note that is referred to again and again comes once", func(t *testing.T) {
		d := mustRead(t, ingesttest.Docx{
			Footnotes: `<w:footnote w:id="1">` + p(run(strings.Repeat("x", 1000))) + `</w:footnote>`,
			Body:      p(strings.Repeat(`<w:r><w:footnoteReference w:id="1"/></w:r>`, 1000)),
		})
		if len(d.Text) > 10_000 {
			t.Errorf("got %d bytes of text, want the note once", len(d.Text))
		}
	})
	t.Run("labels that are more than the text", func(t *testing.T) {
		limits := DefaultLimits
		limits.Text = 10_000
		source := ingesttest.Docx{
			Numbering: abstract(0, lvl(0, 1, "decimal", strings.Repeat("x", 70), "")) + use(1, 0, ""), Body: strings.Repeat(item(1, 0, "A"), 1000),
		}.Bytes()
		if _, err := Read(t.Context(), source, limits); !errors.Is(err, unread.ErrTooLarge) {
			t.Errorf("got %v, want %v", err, unread.ErrTooLarge)
		}
	})
}

func TestI07AnHonestLargeContractIsRead(t *testing.T) {
	picture := bytes.Repeat([]byte("\x01\x02\x03\x05\x07\x0b\x0d\x11"), 1<<17) // never expanded, whatever is in it
	clause := p(run("The Supplier shall keep the Confidential Information of the other party secret and shall use it for the Agreement alone."))
	d, err := Read(t.Context(), packageWith(ingesttest.Repeat(documentBegin, clause, 6000, `</w:body></w:document>`),
		ingesttest.File{Name: "word/media/image1.png", Body: bytes.NewReader(picture)}), DefaultLimits)
	if err != nil || strings.Count(d.Text, "\n") != 6000 {
		t.Errorf("got %d lines and %v, want 6000", strings.Count(d.Text, "\n"), err)
	}
}

func TestHostileNames(t *testing.T) {
	body := func() io.Reader { return strings.NewReader(documentBegin + p(run("x")) + `</w:body></w:document>`) }
	for _, c := range []struct{ name, file, says string }{
		{"a part that comes twice", "word/document.xml", "twice"},
		{"a part that comes twice but for its case", "Word/Document.XML", "twice"},
		{"a name that leads out", "../../etc/passwd", "points out"},
		{"a name that leads out in the other way", `word\..\..\x`, "points out"},
		{"an absolute name", "/etc/passwd", "points out"},
		{"a name of a drive", `C:\x`, "points out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuses(t, packageWith(body(), ingesttest.File{Name: c.file, Body: strings.NewReader("x")}), unread.ErrDamaged, c.says)
		})
	}
	t.Run("a ZIP in it is not opened", func(t *testing.T) {
		inner := packageWith(body())
		if d, err := Read(t.Context(), packageWith(body(), ingesttest.File{Name: "word/embeddings/a.docx", Body: bytes.NewReader(inner)}), DefaultLimits); err != nil || d.Text != "x\n" {
			t.Errorf("got %q and %v, want the text of the document alone", d.Text, err)
		} else if len(d.Origin.Notes) != 1 || !strings.Contains(d.Origin.Notes[0], "embedded") {
			t.Errorf("got notes %q, want one about embedded documents", d.Origin.Notes)
		}
	})
}

// FuzzRead tries documents that are none: it must end with a text or a reason.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		p(run("x")), `<w:tbl><w:tr><w:tc>` + p(run("x")), item(1, 0, "A") + `<w:sectPr><w:headerReference r:id="header1"/></w:sectPr>`,
		p(`<w:r><w:footnoteReference w:id="2"/><w:fldChar w:fldCharType="begin"/><w:instrText>TOC</w:instrText><w:fldChar w:fldCharType="separate"/></w:r>`),
		p(`<mc:AlternateContent><mc:Choice><w:txbxContent>` + p("") + `</w:txbxContent></mc:Choice></mc:AlternateContent>`),
	} {
		f.Add(body, abstract(0, lvl(0, 1, "decimal", "%1.", ""))+use(1, 0, ""), `<w:footnote w:id="2">`+p(run("n"))+`</w:footnote>`)
	}
	limits := Limits{Entries: 100, Part: 1 << 20, Total: 2 << 20, Ratio: 300, Depth: 100, Text: 1 << 16}
	f.Fuzz(func(t *testing.T, body, numbering, notes string) {
		if len(body)+len(numbering)+len(notes) > 1<<14 {
			return
		}
		d, err := Read(context.Background(), ingesttest.Docx{Body: body, Numbering: numbering, Footnotes: notes, Headers: []string{body}}.Bytes(), limits)
		if err == nil {
			tiles(t, d)
			return
		}
		for _, known := range []error{unread.ErrTooLarge, unread.ErrDamaged, unread.ErrNoText, unread.ErrFormat} {
			if errors.Is(err, known) {
				return
			}
		}
		t.Fatalf("an error without a reason: %v", err)
	})
}

// FuzzPackage tries bytes that are no package.
func FuzzPackage(f *testing.F) {
	f.Add(ingesttest.Docx{Body: p(run("x"))}.Bytes())
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 1<<16 {
			return
		}
		if d, err := Read(context.Background(), source, Limits{Entries: 100, Part: 1 << 20, Total: 2 << 20, Ratio: 300, Depth: 100, Text: 1 << 16}); err == nil {
			tiles(t, d)
		}
	})
}
