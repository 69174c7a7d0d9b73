// Package ingesttest makes the documents that tests read: small DOCX and PDF files, honest and hostile ones.
package ingesttest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The namespaces of a DOCX in both variants of the standard.
const (
	Transitional = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	Strict       = "http://purl.oclc.org/ooxml/wordprocessingml/main"
)

const namespaces = ` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"` +
	` xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"` +
	` xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"` +
	` xmlns:v="urn:schemas-microsoft-com:vml" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"`

// Docx is a Word document by its parts: what stands within the root of each. Headers and footers have the ids "header1",
// "footer2" and so on.
type Docx struct {
	Body, Styles, Numbering, Footnotes, Endnotes string
	Headers, Footers                             []string
	Namespace                                    string            // Transitional without one
	Others                                       map[string]string // further files as they are
}

// Bytes is the file.
func (d Docx) Bytes() []byte {
	var files []File
	for name, body := range d.files() {
		files = append(files, File{Name: name, Body: strings.NewReader(body)})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return Zip(files...)
}

func (d Docx) files() map[string]string {
	if d.Namespace == "" {
		d.Namespace = Transitional
	}
	root := func(name, inner string) string {
		return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:%s xmlns:w="%s"%s>%s</w:%s>`, name, d.Namespace, namespaces, inner, name)
	}
	types := "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	if d.Namespace == Strict {
		types = "http://purl.oclc.org/ooxml/officeDocument/relationships/"
	}
	relation := func(id, kind, target string) string {
		return fmt.Sprintf(`<Relationship Id="%s" Type="%s%s" Target="%s"/>`, id, types, kind, target)
	}
	relations := func(inner string) string {
		return `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + inner + `</Relationships>`
	}
	files := map[string]string{
		"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels":         relations(relation("rId1", "officeDocument", "word/document.xml")),
		"word/document.xml":   root("document", "<w:body>"+d.Body+"</w:body>"),
	}
	var rels strings.Builder
	part := func(id, kind, element, inner string) {
		if inner != "" {
			files["word/"+id+".xml"] = root(element, inner)
			rels.WriteString(relation(id, kind, id+".xml"))
		}
	}
	part("styles", "styles", "styles", d.Styles)
	part("numbering", "numbering", "numbering", d.Numbering)
	part("footnotes", "footnotes", "footnotes", d.Footnotes)
	part("endnotes", "endnotes", "endnotes", d.Endnotes)
	for i, inner := range d.Headers {
		part(fmt.Sprintf("header%d", i+1), "header", "hdr", inner)
	}
	for i, inner := range d.Footers {
		part(fmt.Sprintf("footer%d", i+1), "footer", "ftr", inner)
	}
	files["word/_rels/document.xml.rels"] = relations(rels.String())
	for name, body := range d.Others {
		files[name] = body
	}
	return files
}

// Paragraphs is a body of plain paragraphs.
func Paragraphs(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("<w:p>" + Run(text) + "</w:p>")
	}
	return b.String()
}

// Run is text in a run.
func Run(text string) string {
	return `<w:r><w:t xml:space="preserve">` + strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(text) + `</w:t></w:r>`
}

// File is a file of a ZIP file. Declared, if it is not 0, is the size that its header claims.
type File struct {
	Name     string
	Body     io.Reader
	Declared uint64
}

// Zip is a ZIP file of the files, as they are: a name may come twice.
func Zip(files ...File) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		if f.Declared != 0 {
			lie(w, f)
			continue
		}
		part, err := w.Create(f.Name)
		must(err)
		_, err = io.Copy(part, f.Body)
		must(err)
	}
	must(w.Close())
	return out.Bytes()
}

// lie writes a file whose header claims another size.
func lie(w *zip.Writer, f File) {
	packed, sum := deflate(f.Body)
	part, err := w.CreateRaw(&zip.FileHeader{
		Name: f.Name, Method: zip.Deflate, CRC32: sum, CompressedSize64: uint64(len(packed)), UncompressedSize64: f.Declared,
	})
	must(err)
	_, err = part.Write(packed)
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
