package docx

import (
	"strings"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/pipeline"
)

func TestWhatStandsInADocumentAndIsNoTextOfItsOwnIsNotReadAndSaysSo(t *testing.T) {
	whole := ingesttest.Paragraphs("1. The Supplier shall keep it secret.")
	with := func(file string) ingesttest.Docx {
		return ingesttest.Docx{Body: whole, Others: map[string]string{file: "x"}}
	}
	for name, c := range map[string]struct {
		docx ingesttest.Docx
		want string
	}{
		"nothing":              {ingesttest.Docx{Body: whole}, ""},
		"a picture":            {with("word/media/logo.png"), ""},
		"an imported document": {ingesttest.Docx{Body: whole + `<w:altChunk r:id="rId9"/>`}, "imported documents were not read"},
		"an embedded document": {with("word/embeddings/prices.xlsx"), "embedded documents were not read"},
		"a diagram":            {with("word/diagrams/data1.xml"), "diagrams were not read"},
		"a chart":              {with("word/charts/chart1.xml"), "charts were not read"},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, c.docx)
			if got := pipeline.NotRead(d.Origin.Unread); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if notes := strings.Join(d.Origin.Notes, " "); !strings.Contains(notes, c.want) || (notes == "") != (c.want == "") {
				t.Errorf("got notes %q, want %q in them", notes, c.want)
			}
		})
	}
}
