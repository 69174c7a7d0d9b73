package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/pipeline"
)

// clauses are those of the small contract.
var clauses = []string{
	"1. TERM", "This agreement has a term of two years.", "2. LIABILITY", "The reseller shall indemnify the vendor.",
}

func TestDocumentsOfEveryFormat(t *testing.T) {
	for name, c := range map[string]struct{ body, place string }{
		"contract.docx": {string(ingesttest.Docx{Body: ingesttest.Paragraphs(append([]string{"AGREEMENT"}, clauses...)...)}.Bytes()), "paragraph 2"},
		"contract.pdf":  {string(ingesttest.PDF{Pages: [][]string{{"AGREEMENT"}, clauses}}.Bytes()), "page 2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "")
			o := d.runs(exitCompleted, d.doc(name, c.body))
			if o.Counts.Answered != 28 {
				t.Errorf("%d cells answered, want 28", o.Counts.Answered)
			}
			s := d.system()
			job, err := s.Backend.Store.Job(t.Context(), o.Job)
			d.must(err)
			manifest, err := pipeline.ReadManifest(t.Context(), s.Backend.Store, job.ID)
			d.must(err)
			text, err := s.Backend.Blobs.Blob(t.Context(), pipeline.DocumentKey(manifest.Document))
			d.must(err)
			body, err := s.Backend.Blobs.Blob(t.Context(), pipeline.OriginKey(job.Source))
			d.must(err)
			origin, err := pipeline.Decode[pipeline.Origin](body, "origin")
			d.must(err)
			if got := origin.Where(strings.Index(string(text), clauses[0])); got != c.place {
				t.Errorf("got place %q, want %q", got, c.place)
			}
			findings, err := os.ReadFile(filepath.Join(d.out, "findings.json"))
			d.must(err)
			d.says(string(findings), `"source": "`+c.place+`"`)
		})
	}
	t.Run("pages without text are told at once and stay with the job", func(t *testing.T) {
		d := newDesk(t, "")
		doc := d.doc("contract.pdf", string(ingesttest.PDF{Pages: [][]string{clauses, {}}, Scanned: map[int]bool{2: true}}.Bytes()))
		const note = "NOT READ: there is no text on page 2 of 2"
		const verdict = "Not judged in full: page 2 was not read (there is no text: scanned, or drawn)"
		said := d.does(exitPartial, d.runArgs(doc)...)
		d.says(said, note, verdict)
		if strings.Contains(said, "redrive") {
			t.Errorf("it says to redrive what no attempt can read:\n%s", said)
		}
		summary, err := os.ReadFile(filepath.Join(d.out, "report.md"))
		d.must(err)
		d.says(string(summary), "NOT READ")
		s := d.system()
		jobs, _, err := s.Backend.Store.Jobs(t.Context(), "local", "", 10)
		d.must(err)
		manifest, err := pipeline.ReadManifest(t.Context(), s.Backend.Store, jobs[0].ID)
		d.must(err)
		id := string(jobs[0].ID)
		d.says(d.does(exitCompleted, "status", id), "partial", verdict)
		d.says(d.does(exitCompleted, "why", id), "not judged in full: page 2 was not read")
		for _, command := range []string{"status", "report"} {
			d.says(d.does(exitCompleted, command, id, "--json"), `"what": "page 2"`)
		}
		if found, err := os.ReadFile(filepath.Join(d.out, "findings.json")); err != nil || strings.Contains(string(found), `"absence"`) {
			t.Errorf("something is said to be absent from pages that nobody read (%v)", err)
		}
		if len(manifest.Notes) != 1 || !strings.HasPrefix(manifest.Notes[0], note) {
			t.Errorf("got notes %q, want %q", manifest.Notes, note)
		}
	})
}

func TestI05DocumentsThatNobodyCanReadAreRefusedBeforeAnythingIsMade(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"an encrypted PDF":  {string(ingesttest.PDF{Pages: [][]string{clauses}, UserPassword: "secret"}.Bytes()), "needs a password"},
		"an encrypted DOCX": {string(ingesttest.Compound("EncryptedPackage")), "needs a password"},
		"an old .doc":       {string(ingesttest.Compound("WordDocument")), "save it as DOCX"},
		"a scan":            {string(ingesttest.PDF{Pages: [][]string{{}}, Scanned: map[int]bool{1: true}}.Bytes()), "OCR"},
		"a cut PDF":         {"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "")
			doc := d.doc("contract.txt", c.body)
			for _, command := range []string{"run", "submit"} {
				d.says(d.does(exitUsage, command, doc), "contract.txt: ", c.says)
			}
			d.nothingLeft()
		})
	}
}
