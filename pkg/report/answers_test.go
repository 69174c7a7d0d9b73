package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
)

// quiet makes the second call one without findings, and gives it an answer for each chunk.
func quiet(answer string, edits ...func(*report.Answer)) func(*report.Data) {
	return func(d *report.Data) {
		d.Definition.Stages[0].Calls[1].Findings = ""
		d.Definition.Stages[0].Calls[1].Title = "Sum up"
		d.Answers = func(yield func(report.Answer, error) bool) {
			for _, c := range d.Result.Manifest.Chunks {
				a := report.Answer{Chunk: c.Index, Start: c.Start, End: c.End, About: report.About(d.Text, c), Call: "s1c2", State: pipeline.CellAnswered, Text: answer}
				for _, edit := range edits {
					edit(&a)
				}
				if !yield(a, nil) {
					return
				}
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	markdown := func(t *testing.T, d report.Data) string {
		t.Helper()
		var out bytes.Buffer
		if err := report.Markdown(&out, d); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	t.Run("what a call without findings answered is in every form of the report, and whole in the lines", func(t *testing.T) {
		long := `{"summary": "<b>all</b> is well", "urgency": 3, "names": [], "more": "` + strings.Repeat("x", 2000) + `"}`
		d := data(t, quiet(long))
		says(t, page(t, d), "summary: &lt;b&gt;all&lt;/b&gt; is well; urgency: 3; names: none", "Sum up", `href="#answers"`, `href="#c1"`)
		says(t, markdown(t, d), "- Sum up: summary: &lt;b&gt;all&lt;/b&gt; is well; urgency: 3")
		if n := strings.Count(page(t, d), "xxxx"); n > 300 {
			t.Errorf("a long answer is shown %d times four letters long", n)
		}
		var lines bytes.Buffer
		if err := report.JSONLines(&lines, d); err != nil {
			t.Fatal(err)
		}
		n := 0
		for dec := json.NewDecoder(&lines); dec.More(); n++ {
			var a report.Answer
			if err := dec.Decode(&a); err != nil || a.Text != long || a.Chunk != n || a.End <= a.Start {
				t.Errorf("got %+v, %v", a, err)
			}
		}
		if n != 2 {
			t.Errorf("got %d lines, want one for each chunk", n)
		}
	})
	t.Run("an answer that is missing says why, and does not look like one", func(t *testing.T) {
		d := data(t, lacking(pipeline.JobPartial), quiet("", func(a *report.Answer) {
			a.State, a.Failure = pipeline.CellFailed, pipeline.Fail(pipeline.Refused, "content filter")
		}))
		says(t, page(t, d), "No answer: refused: content filter")
		says(t, markdown(t, d), "- Sum up: No answer: refused: content filter")
	})
	t.Run("thousands of answers make a page of bounded size that says where the rest is", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Result.Manifest.Chunks = nil
			for n := range 5000 {
				d.Result.Manifest.Chunks = append(d.Result.Manifest.Chunks, pipeline.Chunk{Index: n})
			}
		}, quiet("yes"))
		out := page(t, d)
		says(t, out, "The first 300 of 5,000")
		if n := strings.Count(out, `class="answers"`); n != 300 {
			t.Errorf("got %d, want 300", n)
		}
	})
	t.Run("answers that cannot be read are an error, not an empty report", func(t *testing.T) {
		d := data(t, quiet("yes"), func(d *report.Data) {
			d.Answers = func(yield func(report.Answer, error) bool) { yield(report.Answer{}, errors.New("disk")) }
		})
		for name, write := range map[string]func() error{
			"html":     func() error { return report.HTML(new(bytes.Buffer), d) },
			"markdown": func() error { return report.Markdown(new(bytes.Buffer), d) },
			"lines":    func() error { return report.JSONLines(new(bytes.Buffer), d) },
		} {
			if err := write(); err == nil || !strings.Contains(err.Error(), "disk") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("work on items is told in items, with what each printed, and not in findings and questions", func(t *testing.T) {
		d := data(t, quiet("two\nlines <x>"), func(d *report.Data) {
			d.Definition.Handler, d.Definition.Categories, d.Definition.Analysts = "exec@1", nil, nil
			d.Definition.Stages[0].Calls = d.Definition.Stages[0].Calls[1:]
			d.Result.Counts = pipeline.Counts{Cells: 2, Answered: 2}
		})
		for form, out := range map[string]string{"html": page(t, d), "markdown": markdown(t, d)} {
			says(t, out, "Complete: 2 of 2 items answered.", "item 1", "two")
			for _, bad := range []string{"question", "nothing was found", "Findings"} {
				if strings.Contains(out, bad) {
					t.Errorf("%s: it says %q", form, bad)
				}
			}
		}
		says(t, page(t, d), "<pre>two\nlines &lt;x&gt;</pre>")
	})
}

func TestRedriven(t *testing.T) {
	t.Run("a report after a redrive says that it changed, and what was before", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Result.Epoch = 3
			d.Before = &pipeline.Result{Counts: pipeline.Counts{Cells: 4, Answered: 3}}
			d.Result.Findings = []pipeline.Finding{finding(t, pipeline.High, "The cap is ten", 1)}
		})
		want := "The job was redriven: this report (epoch 3) replaces every earlier one. Before: 3 of 4 questions answered and 0 findings; now 4 and 1 finding."
		var js, md bytes.Buffer
		if err := errors.Join(report.JSON(&js, d), report.Markdown(&md, d)); err != nil {
			t.Fatal(err)
		}
		says(t, page(t, d), want)
		says(t, js.String(), want)
		says(t, md.String(), "replaces every earlier one")
		if out := page(t, data(t)); strings.Contains(out, "redriven") {
			t.Error("a job that never was is said to be redriven")
		}
	})
}

func TestWithdrawn(t *testing.T) {
	d := data(t, func(d *report.Data) {
		f := finding(t, pipeline.High, "The cap is ten", 1)
		f.State, f.Why = pipeline.Withdrawn, "s2c1 stands for s1c1 and reports nothing there"
		d.Result.Withdrawn = []pipeline.Finding{f}
	})
	var js bytes.Buffer
	if err := report.JSON(&js, d); err != nil {
		t.Fatal(err)
	}
	says(t, page(t, d), "1 more finding was withdrawn", "s2c1 stands for s1c1")
	says(t, js.String(), `"withdrawn": [`, `"why": "s2c1 stands for s1c1 and reports nothing there"`)
	if got := marked(page(t, d)); len(got) != 0 {
		t.Errorf("a withdrawn finding is marked: %v", got)
	}
}

func TestPartialNeverLooksComplete(t *testing.T) {
	for _, status := range []pipeline.JobStatus{pipeline.JobPartial, pipeline.JobFailed, pipeline.JobCancelled} {
		d := data(t, lacking(status))
		var js, md bytes.Buffer
		if err := errors.Join(report.JSON(&js, d), report.Markdown(&md, d)); err != nil {
			t.Fatal(err)
		}
		says(t, js.String(), `"complete": false`, fmt.Sprintf(`"status": %q`, status), `"gaps": [`, "3 of 4 questions answered", "does not cover the whole document")
		for form, out := range map[string]string{"html": page(t, d), "markdown": md.String()} {
			says(t, out, "3 of 4 questions answered", "does not cover the whole document", "refused", "content filter", "Not everything was judged")
			if strings.Contains(out, "nothing was found") {
				t.Errorf("%s, %s: it says that nothing was found", status, form)
			}
		}
	}
}
