package report_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
)

func TestWhatOfTheDocumentWasNotReadIsSaidInEveryReport(t *testing.T) {
	const note = "NOT READ: there is no text on page 3 of 4"
	d := data(t, func(d *report.Data) {
		d.Text = "The cap is ten."
		d.Result.Manifest.Chunks = []pipeline.Chunk{{End: len(d.Text)}}
		d.Result.Manifest.Notes = []string{note}
		d.Result.Findings = []pipeline.Finding{{Title: "Cap", Quote: "ten", Start: 11, End: 14, Match: pipeline.MatchExact, Severity: pipeline.Low}}
		d.Origin = pipeline.Origin{Version: pipeline.OriginVersion, Unit: "page", Document: d.Result.Manifest.Document}
		d.Origin.Add("", 4, len(d.Text))
	})
	for name, write := range map[string]func(io.Writer, report.Data) error{"HTML": report.HTML, "Markdown": report.Markdown, "JSON": report.JSON} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := write(&out, d); err != nil {
				t.Fatal(err)
			}
			says(t, out.String(), note, "page 4")
		})
	}
	t.Run("a map of another text names no page", func(t *testing.T) {
		d := d
		d.Origin.Document = "another"
		var out bytes.Buffer
		if err := report.JSON(&out, d); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "page 4\"") {
			t.Errorf("got a page from the map of another text:\n%s", out.String())
		}
	})
}
