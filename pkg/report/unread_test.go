package report_test

import (
	"bytes"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
)

// scanned makes pages 2 to 4 of the document unread, as the finalize ends such a job.
func scanned(d *report.Data) {
	d.Result.Manifest.Unread = []pipeline.Unread{{What: "pages 2-4", Pages: []int{2, 3, 4}, Why: "there is no text: scanned, or drawn"}}
	d.Result.Status, d.Result.Job.Status = pipeline.JobPartial, pipeline.JobPartial
	d.Result.Reason = pipeline.Fail(pipeline.Invalid, "not judged in full: pages 2-4 were not read")
}

func TestADocumentThatWasNotReadInFullLooksCompleteInNoReport(t *testing.T) {
	const verdict = "Not judged in full: pages 2-4 were not read"
	var markdown, programs bytes.Buffer
	for _, err := range []error{report.Markdown(&markdown, data(t, scanned)), report.JSON(&programs, data(t, scanned))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"HTML": page(t, data(t, scanned)), "Markdown": markdown.String()} {
		for _, never := range []string{"Complete:", "Nothing found in", "none is missing", "holdfast redrive"} {
			if strings.Contains(text, never) {
				t.Errorf("%s says %q", name, never)
			}
		}
		says(t, text, verdict+"; 4 of 4 questions answered.", verdict+".", "there is no text: scanned, or drawn")
		if n := strings.Count(text, verdict+"."); n < 4 {
			t.Errorf("%s: got %d verdicts, want one for each of 2 categories and 2 analysts", name, n)
		}
	}
	says(t, programs.String(), `"complete": false`, verdict, `"judged_in_full": false`, `"unread": [`, `"what": "pages 2-4"`)
	if strings.Contains(programs.String(), `"judged_in_full": true`) {
		t.Error("the JSON says of a category that it was judged in full")
	}
}

func TestWhatIsMissingAndWhatWasNotReadAreBothSaid(t *testing.T) {
	got := page(t, data(t, scanned, lacking(pipeline.JobPartial)))
	says(t, got, "Partial: 3 of 4 questions answered, 1 without an answer.", "1 of 2 questions have no answer, and pages 2-4 were not read.", "Besides, pages 2-4 were not read.", "holdfast redrive")
}
