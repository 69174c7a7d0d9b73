package docx

import (
	"strings"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/pipeline"
)

func mustRead(t testing.TB, d ingesttest.Docx) pipeline.Document {
	t.Helper()
	read, err := Read(t.Context(), d.Bytes(), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	tiles(t, read)
	return read
}

// tiles checks that the map back covers the text, byte by byte.
func tiles(t testing.TB, d pipeline.Document) {
	t.Helper()
	sum := 0
	for _, part := range d.Origin.Parts {
		for _, length := range part.Lengths {
			sum += length
		}
	}
	if sum != len(d.Text) {
		t.Errorf("got a map of %d bytes, want of %d", sum, len(d.Text))
	}
}

func wantText(t *testing.T, d pipeline.Document, lines ...string) {
	t.Helper()
	if want := strings.Join(lines, "\n") + "\n"; d.Text != want {
		t.Errorf("got text\n%s\nwant\n%s", d.Text, want)
	}
}

func p(inner string) string { return "<w:p>" + inner + "</w:p>" }

func run(text string) string { return ingesttest.Run(text) }

// Every part of a document that holds text has one sentence here; each comes once, in reading order.
func TestI02EverySentenceOfADocumentIsReadOnceInReadingOrder(t *testing.T) {
	box := func(text string) string { return `<w:txbxContent>` + p(run(text)) + `</w:txbxContent>` }
	cell := func(properties, inner string) string {
		return `<w:tc><w:tcPr>` + properties + `</w:tcPr>` + inner + `</w:tc>`
	}
	d := mustRead(t, ingesttest.Docx{
		Headers: []string{p(run("Default header.")), p(run("First header.")), p(run("Default header."))},
		Footers: []string{p(run("Default footer."))},
		Footnotes: `<w:footnote w:id="-1" w:type="separator">` + p(run("Separator.")) + `</w:footnote>` +
			`<w:footnote w:id="2">` + p(`<w:r><w:footnoteRef/></w:r>`+run("In the footnote.")) + `</w:footnote>`,
		Endnotes: `<w:endnote w:id="2">` + p(run("In the endnote.")) + `</w:endnote>`,
		Body: p(run("Body.")+`<w:r><w:footnoteReference w:id="2"/></w:r>`+run(" It goes on.")+`<w:r><w:endnoteReference w:id="2"/></w:r>`) +
			p(`<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:wsp><wps:txbx>`+box("In a shape.")+`</wps:txbx></wps:wsp></w:drawing></mc:Choice>`+
				`<mc:Fallback><w:pict><v:shape><v:textbox>`+box("In a shape.")+`</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>`+run("Beside the shape.")) +
			p(`<w:r><w:pict><v:shape><v:textbox>`+box("In an old text box.")+`</v:textbox></v:shape></w:pict></w:r>`) +
			`<w:sdt><w:sdtPr><w:alias w:val="not text"/></w:sdtPr><w:sdtContent>` + p(run("In a content control.")) + `</w:sdtContent></w:sdt>` +
			p(`<w:hyperlink r:id="x">`+run("In a link.")+`</w:hyperlink>`) +
			p(`<w:fldSimple w:instr="REF a">`+run("In a simple field.")+`</w:fldSimple>`) +
			p(`<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>REF b</w:instrText><w:fldChar w:fldCharType="separate"/></w:r>`+run("In a field.")+`<w:r><w:fldChar w:fldCharType="end"/></w:r>`) +
			`<w:tbl>` +
			`<w:tr>` + cell(`<w:gridSpan w:val="2"/>`, p(run("Merged across."))) + cell("", p(run("Right."))) + `</w:tr>` +
			`<w:tr>` + cell(`<w:vMerge w:val="restart"/>`, p(run("Merged down."))) + cell("", p("")) + cell("", p(run("Far right."))) + `</w:tr>` +
			`<w:tr>` + cell(`<w:vMerge/>`, p("")) + cell("", p(run("Below."))) + cell("", p("")) + `</w:tr>` +
			`<w:tr>` + cell("", p(run("Two"))+p(run("paragraphs."))) + cell("", `<w:tbl><w:tr>`+cell("", p(run("Nested.")))+cell("", p(run("Cell.")))+`</w:tr></w:tbl>`+p("")) + `</w:tr>` +
			`</w:tbl>` +
			p(`<m:oMath><m:r><m:t>a=b</m:t></m:r></m:oMath>`) +
			`<w:sectPr><w:headerReference w:type="first" r:id="header2"/><w:headerReference w:type="default" r:id="header1"/><w:headerReference w:type="even" r:id="header3"/><w:footerReference w:type="default" r:id="footer1"/></w:sectPr>`,
	})
	wantText(t, d,
		"First header.", "Default header.",
		"Body.[1] It goes on.[i]", "[Footnote 1] In the footnote.", "[Endnote i] In the endnote.",
		"Beside the shape.", "In a shape.", "In an old text box.", "In a content control.", "In a link.", "In a simple field.", "In a field.",
		"Merged across. | Right.", "Merged down. |  | Far right.", " | Below.", "Two", "paragraphs.", "Nested. | Cell.",
		"a=b", "Default footer.")
	for words, place := range map[string]string{
		"First header": "header, paragraph 1", "Body.": "paragraph 1", "In the footnote": "footnote 1", "In the endnote": "endnote 1",
		"In a shape": "text box, paragraph 1", "In a link": "paragraph 5", "Right.": "paragraph 9", "Far right": "paragraph 12", "Cell.": "paragraph 19",
		"Default footer": "footer, paragraph 1",
	} {
		if got := d.Origin.Where(strings.Index(d.Text, words)); got != place {
			t.Errorf("%q: got place %q, want %q", words, got, place)
		}
	}
}

func TestTheStrictVariantReadsTheSame(t *testing.T) {
	body := ingesttest.Paragraphs("One.", "Two.")
	strict := mustRead(t, ingesttest.Docx{Body: body, Namespace: ingesttest.Strict})
	if usual := mustRead(t, ingesttest.Docx{Body: body}); strict.Text != usual.Text {
		t.Errorf("got %q, want %q", strict.Text, usual.Text)
	}
}

func TestTrackedChangesAreReadAsIfAccepted(t *testing.T) {
	mark := func(kind string) string { return `<w:pPr><w:rPr><w:` + kind + ` w:id="1"/></w:rPr></w:pPr>` }
	d := mustRead(t, ingesttest.Docx{
		Body: p(run("The cap is ")+`<w:del>`+`<w:r><w:delText>ten</w:delText></w:r>`+`</w:del><w:ins>`+run("twenty")+`</w:ins>`+run(".")) +
			p(mark("del")+run("This goes on ")) + p(run("with this.")) +
			p(mark("del")+`<w:del><w:r><w:delText>Gone.</w:delText></w:r></w:del>`) +
			p(`<w:moveFrom>`+run("Moved.")+`</w:moveFrom>`) + p(`<w:moveTo>`+run("Moved.")+`</w:moveTo>`) +
			`<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc>` + p(run("A deleted row.")) + `</w:tc></w:tr><w:tr><w:tc>` + p(run("A row.")) + `</w:tc></w:tr></w:tbl>` +
			p(`<w:r><w:commentReference w:id="0"/></w:r>`+run("Commented.")),
	})
	wantText(t, d, "The cap is twenty.", "This goes on with this.", "Moved.", "A row.", "Commented.")
	notes := strings.Join(d.Origin.Notes, " ")
	for _, words := range []string{"tracked changes", "insertions", "deletions", "comments (1)"} {
		if !strings.Contains(notes, words) {
			t.Errorf("got notes %q, want %q in them", notes, words)
		}
	}
}

func TestATableOfContentsIsLeftOutAndHeadingsStay(t *testing.T) {
	field := func(kind string) string { return `<w:r><w:fldChar w:fldCharType="` + kind + `"/></w:r>` }
	contents := p(field("begin")+`<w:r><w:instrText> TOC \o "1-3" </w:instrText></w:r>`+field("separate")+run("1 Scope 3")) + p(run("2 Term 4"))
	t.Run("one that ends", func(t *testing.T) {
		d := mustRead(t, ingesttest.Docx{Body: contents + p(field("end")) + ingesttest.Paragraphs("1 Scope", "2 Term")})
		wantText(t, d, "1 Scope", "2 Term")
		if len(d.Origin.Notes) != 1 || !strings.Contains(d.Origin.Notes[0], "table of contents") {
			t.Errorf("got notes %q, want one about the table of contents", d.Origin.Notes)
		}
	})
	t.Run("one that never ends swallows nothing", func(t *testing.T) {
		wantText(t, mustRead(t, ingesttest.Docx{Body: contents + ingesttest.Paragraphs("1 Scope", "2 Term")}), "1 Scope 3", "2 Term 4", "1 Scope", "2 Term")
	})
}

func TestSigns(t *testing.T) {
	d := mustRead(t, ingesttest.Docx{
		Body: p(run("a")+`<w:r><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t><w:softHyphen/><w:t>e</w:t></w:r>`) +
			p(`<w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:t xml:space="preserve"> yes </w:t><w:sym w:font="Wingdings" w:char="F025"/></w:r>`) +
			p(`<w:r><w:rPr><w:vanish/></w:rPr><w:t>Hidden.</w:t></w:r>`) +
			p(`<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMCHECKBOX</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`+run(" agreed")),
	})
	wantText(t, d, "a\tb\nc-de", "☑ yes [?]", "Hidden.", "☒ agreed")
	if notes := strings.Join(d.Origin.Notes, " "); !strings.Contains(notes, "hidden text") || !strings.Contains(notes, "[?]") {
		t.Errorf("got notes %q, want the hidden text and the unknown sign in them", notes)
	}
}
