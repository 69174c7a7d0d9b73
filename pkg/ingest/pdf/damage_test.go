package pdf

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/ingest/unread"
	"holdfast/pkg/pipeline"
)

// page of so many clauses, each its own.
func longPage(n int) (lines []string) {
	for i := range 40 {
		lines = append(lines, clause(fmt.Sprintf("%d.%d", n, i)))
	}
	return lines
}

func TestADamagedContentNeverLosesTextInSilence(t *testing.T) {
	pages := [][]string{longPage(1), longPage(2), longPage(3)}
	for name, c := range map[string]struct {
		pdf  ingesttest.PDF
		want string
	}{
		"a page's own content":     {ingesttest.PDF{Packed: true, Damaged: map[int]bool{2: true}}, "page 2 was not read"},
		"the form that it draws":   {ingesttest.PDF{Packed: true, Forms: true, Damaged: map[int]bool{1: true, 2: true}}, "pages 1-2 were not read"},
		"of an encrypted document": {ingesttest.PDF{Packed: true, Encrypt: true, Damaged: map[int]bool{3: true}}, "page 3 was not read"},
		"none, packed":             {ingesttest.PDF{Packed: true}, ""},
		"none, packed in forms":    {ingesttest.PDF{Packed: true, Forms: true}, ""},
		"none, encrypted":          {ingesttest.PDF{Packed: true, Encrypt: true}, ""},
		"none, plain":              {ingesttest.PDF{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.pdf.Pages = pages
			d := mustRead(t, c.pdf)
			if got := pipeline.NotRead(d.Origin.Unread); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if (len(d.Origin.Notes) > 0) != (c.want != "" || c.pdf.Encrypt) {
				t.Errorf("got notes %q", d.Origin.Notes)
			}
		})
	}
	t.Run("if nothing is left it is refused", func(t *testing.T) {
		source := ingesttest.PDF{Pages: [][]string{longPage(1)}, Packed: true}.Bytes()
		begin := bytes.Index(source, []byte("stream\nx\x9c")) + len("stream\n")
		clear(source[begin : begin+40])
		refuses(t, source, testConfig(), unread.ErrDamaged, "page 1 of 1")
	})
}

func TestScannedPagesAreNamedByNumber(t *testing.T) {
	text := []string{clause("1.")}
	d := mustRead(t, ingesttest.PDF{Pages: [][]string{text, {}, text, {}, {}}, Scanned: map[int]bool{2: true, 4: true, 5: true}})
	if got, want := fmt.Sprint(d.Origin.Unread), "[{pages 2, 4-5 [2 4 5] there is no text: scanned, or drawn}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestObjectsThatCannotBeFollowedAreNoReasonToPanic(t *testing.T) {
	for _, source := range []string{
		"", "startxref", "startxref\n0", "trailer<<", "xref\n0 1\nstartxref\n0\n",
		"xref\n0 2\n0 0 f\n9 0 n\ntrailer<</Root 1 0 R>>\nstartxref\n0\n",
		"1 0 obj<</Pages[[[(a\\)(b))]]]/X<41>%>>xref\n1 1\n0 0 n\ntrailer<</Root 1 0 R\nstartxref\n42\n",
		"1 0 obj 1 0 R xref\n1 1\n0 0 n\ntrailer<</Root 1 0 R\nstartxref\n14\n",
	} {
		o, err := readObjects([]byte(source))
		if err == nil {
			c := &contents{objects: o, damaged: map[ref]bool{}, left: 1}
			for range maps.Keys(o.at) {
				c.whole(o.root)
			}
		}
	}
}
