package docx

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
)

func lvl(at int, start int, format, text, more string) string {
	return fmt.Sprintf(`<w:lvl w:ilvl="%d"><w:start w:val="%d"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/>%s</w:lvl>`, at, start, format, text, more)
}

func abstract(id int, inner string) string {
	return fmt.Sprintf(`<w:abstractNum w:abstractNumId="%d">%s</w:abstractNum>`, id, inner)
}

func use(id, of int, inner string) string {
	return fmt.Sprintf(`<w:num w:numId="%d"><w:abstractNumId w:val="%d"/>%s</w:num>`, id, of, inner)
}

func item(num, at int, text string) string {
	return p(fmt.Sprintf(`<w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr></w:pPr>`, at, num) + run(text))
}

func styled(style, text string) string {
	return p(`<w:pPr><w:pStyle w:val="` + style + `"/></w:pPr>` + run(text))
}

func TestI02ListNumbersAreReadAsWordShowsThem(t *testing.T) {
	legal := abstract(0, lvl(0, 1, "decimal", "%1.", "")+lvl(1, 1, "decimal", "%1.%2", "")+lvl(2, 1, "lowerLetter", "(%3)", ""))
	for _, c := range []struct {
		name, numbering, body string
		want                  []string
	}{
		{
			"levels count and restart", legal + use(1, 0, ""),
			item(1, 0, "A") + item(1, 1, "B") + item(1, 1, "C") + item(1, 2, "D") + item(1, 2, "E") + item(1, 0, "F") + item(1, 1, "G") + item(1, 2, "H"),
			[]string{"1. A", "1.1 B", "1.2 C", "(a) D", "(b) E", "2. F", "2.1 G", "(a) H"},
		},
		{"a level that is used before those above it", legal + use(1, 0, ""), item(1, 1, "A") + item(1, 0, "B"), []string{"1.1 A", "2. B"}},
		{"two uses of a list count on together", legal + use(1, 0, "") + use(2, 0, ""), item(1, 0, "A") + item(2, 0, "B"), []string{"1. A", "2. B"}},
		{
			"a use with its own start begins there, once", legal + use(1, 0, "") + use(2, 0, `<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride>`),
			item(1, 0, "A") + item(2, 0, "B") + item(2, 0, "C"),
			[]string{"1. A", "7. B", "8. C"},
		},
		{
			"a use with its own level", legal + use(1, 0, `<w:lvlOverride w:ilvl="0">`+lvl(0, 1, "upperRoman", "Article %1", "")+`</w:lvlOverride>`),
			item(1, 0, "A") + item(1, 0, "B"),
			[]string{"Article I A", "Article II B"},
		},
		{"empty paragraphs count too", legal + use(1, 0, ""), item(1, 0, "A") + item(1, 0, "") + item(1, 0, "C"), []string{"1. A", "3. C"}},
		{
			"legal numbers are in digits", abstract(0, lvl(0, 4, "upperRoman", "Article %1", "")+lvl(1, 2, "decimal", "%1.%2", "<w:isLgl/>")) + use(1, 0, ""),
			item(1, 0, "A") + item(1, 1, "B"),
			[]string{"Article IV A", "4.2 B"},
		},
		{
			"a level that never restarts", abstract(0, lvl(0, 1, "decimal", "%1.", "")+lvl(1, 1, "decimal", "%2)", `<w:lvlRestart w:val="0"/>`)) + use(1, 0, ""),
			item(1, 0, "A") + item(1, 1, "B") + item(1, 0, "C") + item(1, 1, "D"),
			[]string{"1. A", "1) B", "2. C", "2) D"},
		},
		{"bullets", abstract(0, lvl(0, 1, "bullet", "\uf0b7", "")) + use(1, 0, ""), item(1, 0, "A"), []string{"• A"}},
		{"a list that is not there", "", item(9, 0, "A"), []string{"A"}},
		{"after z come doubled letters", abstract(0, lvl(0, 26, "upperLetter", "%1", "")) + use(1, 0, ""), item(1, 0, "A") + item(1, 0, "B"), []string{"Z A", "AA B"}},
		{"a number that no Roman numeral can be", abstract(0, lvl(0, 999999, "upperRoman", "%1", "")) + use(1, 0, ""), item(1, 0, "A"), []string{"999999 A"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantText(t, mustRead(t, ingesttest.Docx{Body: c.body, Numbering: c.numbering}), c.want...)
		})
	}
}

func TestStylesNumberTheirParagraphs(t *testing.T) {
	d := mustRead(t, ingesttest.Docx{
		Numbering: abstract(0, lvl(0, 1, "decimal", "%1.", `<w:pStyle w:val="Clause"/>`)+lvl(1, 1, "decimal", "%1.%2", `<w:pStyle w:val="Sub"/>`)) + use(1, 0, ""),
		Styles: `<w:style w:type="paragraph" w:styleId="Clause"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>` +
			`<w:style w:type="paragraph" w:styleId="Sub"><w:basedOn w:val="Clause"/></w:style>` +
			`<w:style w:type="paragraph" w:styleId="Deep"><w:basedOn w:val="Sub"/><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>` +
			`<w:style w:type="paragraph" w:styleId="Circle"><w:basedOn w:val="Circle"/></w:style>`,
		Body: styled("Clause", "A") + styled("Sub", "B") + styled("Deep", "C") + styled("Circle", "D") +
			p(`<w:pPr><w:pStyle w:val="Clause"/><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr>`+run("E")) +
			p(`<w:pPr><w:pStyle w:val="Clause"/><w:pPrChange><w:pPr><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr></w:pPrChange></w:pPr>`+run("F")),
	})
	wantText(t, d, "1. A", "1.1 B", "1.2 C", "D", "E", "2. F")
}

func TestALabelIsBounded(t *testing.T) {
	d := mustRead(t, ingesttest.Docx{
		Numbering: abstract(0, lvl(0, 1, "decimal", strings.Repeat("x", 10_000), "")) + use(1, 0, ""), Body: item(1, 0, "A"),
	})
	if len(d.Text) > maxLabel+10 {
		t.Errorf("got %d bytes of text from a label, want at most %d", len(d.Text), maxLabel+10)
	}
}
