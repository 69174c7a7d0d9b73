package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/report"
)

// text has every kind of character that offsets trip over, and markup that must not become any.
const text = "1. Café\u0301 👩‍👩‍👧 <script>alert(1)</script>.\r\nThe cap is ten. The cap is ten & more.\nEnd of א 漢 text."

// span finds the nth occurrence of a quote.
func span(t *testing.T, quote string, nth int) (int, int) {
	t.Helper()
	at := 0
	for range nth {
		i := strings.Index(text[at:], quote)
		if i < 0 {
			t.Fatalf("%q is not in the text", quote)
		}
		at += i + len(quote)
	}
	return at - len(quote), at
}

func finding(t *testing.T, severity pipeline.Severity, quote string, nth int) pipeline.Finding {
	t.Helper()
	start, end := span(t, quote, nth)
	f := pipeline.Finding{
		State: pipeline.Confirmed, Category: "cap", Analyst: "liability", Call: "s1c1", Severity: severity, Title: "Low <b>cap</b>",
		Quote: quote, Start: start, End: end, Match: pipeline.MatchExact, Rationale: "because *it* is", Confidence: 0.8, Chunk: 0, Model: "scripted@1",
	}
	f.ID = pipeline.FindingID("hash", f)
	return f
}

// data is a job of two chunks and two categories with one call each, which ended as given.
func data(t *testing.T, edits ...func(*report.Data)) report.Data {
	t.Helper()
	d := pipelinetest.NewDefinition(1, 2, func(d *pipeline.Definition) {
		d.Categories = []pipeline.Category{{ID: "cap", Title: "Cap on liability"}, {ID: "law", Title: "Governing law"}}
		d.Analysts = []pipeline.Analyst{{ID: "liability", Title: "Liability"}, {ID: "disputes", Title: "Disputes"}}
		d.Stages[0].Calls[0].Category, d.Stages[0].Calls[0].Analyst = "cap", "liability"
		d.Stages[0].Calls[1].Category, d.Stages[0].Calls[1].Analyst = "law", "disputes"
	})
	middle := strings.Index(text, "The cap")
	job := pipelinetest.NewJob("job-1", func(j *pipeline.Job) { j.Status = pipeline.JobCompleted })
	out := report.Data{
		Text: text, Definition: d,
		Model: pipeline.ModelInfo{Name: "scripted", Version: "1", Free: true, PricedAs: "sonnet"},
		Result: pipeline.Result{
			Job: job, Status: job.Status, Epoch: 1, At: pipelinetest.T0,
			Manifest: pipeline.Manifest{Document: "hash", Chunks: []pipeline.Chunk{{Index: 0, End: middle}, {Index: 1, Start: middle, End: len(text)}}},
			Counts:   pipeline.Counts{Cells: 4, Answered: 4},
			Spend:    pipeline.Spend{Tries: 5, Cost: 2 * pipeline.Dollar, Failures: map[pipeline.Kind]int{pipeline.Throttled: 1}},
			Attempts: []pipeline.Record{{Task: pipeline.WorkTask(0), Generation: 1, Attempt: 1, Worker: "w1", ClaimedAt: pipelinetest.T0, EndedAt: pipelinetest.T0 + 5000, Outcome: pipeline.Succeeded, Tries: 5}},
		},
		Journals: []pipeline.Journal{{Task: pipeline.WorkTask(0), Generation: 1, Tries: []pipeline.Try{
			{Call: "s1c1", Number: 1, At: pipelinetest.T0 + 1000, Millis: 300, Failure: pipeline.Fail(pipeline.Throttled, "slow down")},
			{Call: "s1c1", Number: 2, At: pipelinetest.T0 + 2000, Millis: 300},
		}}},
	}
	for _, edit := range edits {
		edit(&out)
	}
	return out
}

// lacking makes the first category's call of chunk 1 missing.
func lacking(status pipeline.JobStatus) func(*report.Data) {
	return func(d *report.Data) {
		d.Result.Status, d.Result.Job.Status = status, status
		d.Result.Reason = pipeline.Fail(pipeline.Refused, "the content filter refused")
		d.Result.Counts = pipeline.Counts{Cells: 4, Answered: 3, Failed: 1}
		d.Result.Missing = []pipeline.Cell{{Chunk: 1, Call: "s1c1", State: pipeline.CellFailed, Failure: pipeline.Fail(pipeline.Refused, "content filter")}}
	}
}

func page(t *testing.T, d report.Data) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.HTML(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var tags = regexp.MustCompile(`<[^>]*>`)

// words is the document's text as a reader of the page sees it.
func words(t *testing.T, page string) string {
	t.Helper()
	var all strings.Builder
	for _, found := range regexp.MustCompile(`(?s)<div class="words">(.*?)</div>`).FindAllStringSubmatch(page, -1) {
		body := regexp.MustCompile(`(?s)<sup>.*?</sup>`).ReplaceAllString(found[1], "")
		all.WriteString(html.UnescapeString(tags.ReplaceAllString(body, "")))
	}
	return all.String()
}

// marked is the text inside marks, one entry for each run.
func marked(page string) []string {
	var all []string
	for _, found := range regexp.MustCompile(`(?s)<mark class="(sev-\w+)"><a href="(#f\d+)">(.*?)</a></mark>`).FindAllStringSubmatch(page, -1) {
		all = append(all, fmt.Sprintf("%s %s %s", found[1], found[2], html.UnescapeString(found[3])))
	}
	return all
}

func says(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

func TestHTML(t *testing.T) {
	t.Run("every word of the document is there, once, whatever is marked", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Result.Findings = []pipeline.Finding{
				finding(t, pipeline.High, "cap is ten. The cap", 1), finding(t, pipeline.Low, "The cap is ten", 2), finding(t, pipeline.Critical, "ten & more", 1),
			}
		})
		if got := words(t, page(t, d)); got != text {
			t.Errorf("got text\n%q\nwant\n%q", got, text)
		}
	})
	t.Run("overlapping marks show the gravest and lead to their findings and back", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Result.Findings = []pipeline.Finding{
				finding(t, pipeline.Low, "The cap is ten", 2), finding(t, pipeline.High, "cap is ten. The cap", 1), finding(t, pipeline.Critical, "ten & more", 1),
			}
		})
		out := page(t, d)
		want := []string{"sev-high #f2 cap is ten. ", "sev-high #f2 The cap", "sev-low #f1  is ", "sev-critical #f3 ten", "sev-critical #f3  & more"}
		if got := marked(out); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("got marks %q, want %q", got, want)
		}
		for n := 1; n <= 3; n++ {
			says(t, out, fmt.Sprintf(`id="f%d"`, n), fmt.Sprintf(`id="t%d"`, n), fmt.Sprintf(`href="#t%d"`, n), fmt.Sprintf(`<sup><a href="#f%d">`, n))
		}
	})
	t.Run("a finding names the questions that found the same", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			f := finding(t, pipeline.High, "The cap is ten", 1)
			f.Contributors = []string{"s1c2", "gone"}
			d.Result.Findings = []pipeline.Finding{f}
			d.Definition.Stages[0].Calls[1].Title = "Is there a cap?"
		})
		says(t, page(t, d), "also found by: Is there a cap?, gone")
	})
	t.Run("a mark that crosses chunks is marked in both", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Result.Findings = []pipeline.Finding{finding(t, pipeline.High, "script>.\r\nThe cap", 1)}
		})
		if got := marked(page(t, d)); len(got) != 2 || !strings.HasSuffix(got[1], "The cap") {
			t.Errorf("got marks %q, want one in each chunk", got)
		}
	})
	t.Run("offsets that do not hold the quote mark nothing, and the finding stays", func(t *testing.T) {
		for name, edit := range map[string]func(*pipeline.Finding){
			"other words":           func(f *pipeline.Finding) { f.Start++; f.End++ },
			"past the end":          func(f *pipeline.Finding) { f.End = len(text) + 5 },
			"before the start":      func(f *pipeline.Finding) { f.Start = -3 },
			"begins in a character": func(f *pipeline.Finding) { f.Start, f.End = 7, 10; f.Quote = text[7:10] },
			"ends in a character":   func(f *pipeline.Finding) { f.Start, f.End = 6, 9; f.Quote = text[6:9] },
			"not in the text":       func(f *pipeline.Finding) { f.Match = pipeline.MatchUngrounded },
		} {
			f := finding(t, pipeline.High, "The cap is ten", 1)
			edit(&f)
			out := page(t, data(t, func(d *report.Data) { d.Result.Findings = []pipeline.Finding{f} }))
			if got := marked(out); len(got) != 0 {
				t.Errorf("%s: got marks %q, want none", name, got)
			}
			says(t, out, `id="f1"`)
		}
	})
	t.Run("what documents and models say is never markup", func(t *testing.T) {
		out := page(t, data(t, func(d *report.Data) {
			d.Result.Job.Name = `"><img src=x>`
			d.Result.Findings = []pipeline.Finding{finding(t, pipeline.High, "<script>alert(1)</script>", 1)}
		}))
		for _, bad := range []string{"<script", "<img", "<b>cap"} {
			if strings.Contains(out, bad) {
				t.Errorf("the page contains %q", bad)
			}
		}
	})
	t.Run("it needs no network and no script", func(t *testing.T) {
		out := page(t, data(t))
		if found := regexp.MustCompile(`(?i)(src|href)="[^#]|url\(|@import|https?:|<script|<link`).FindString(out); found != "" {
			t.Errorf("the page refers to something outside itself: %q", found)
		}
	})
	t.Run("a complete job says so, and of an empty category that nothing was found", func(t *testing.T) {
		out := page(t, data(t, func(d *report.Data) {
			d.Result.Findings = []pipeline.Finding{finding(t, pipeline.High, "The cap is ten", 1)}
		}))
		says(t, out, "Complete: 4 of 4 questions answered.", "Nothing found in 2 questions.", "scripted@1: $0 spent; at sonnet&#39;s price it would have been $2.00.", "model scripted@1", "throttled 1")
	})
	t.Run("of what a model has no rules for it never says that nothing was found", func(t *testing.T) {
		d := data(t, func(d *report.Data) { d.Result.Findings, d.Model.Placeholders = nil, 1 })
		var text strings.Builder
		if err := report.Markdown(&text, d); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{page(t, d), text.String()} {
			says(t, out, "has no rules for 2 of 4 questions", "placeholders")
			if strings.Contains(out, "Nothing found") || strings.Contains(out, "nothing was found") {
				t.Errorf("placeholders are taken for a judgement:\n%s", out)
			}
		}
	})
	t.Run("what was not judged in full is never said to be clean", func(t *testing.T) {
		for status, headline := range map[pipeline.JobStatus]string{
			pipeline.JobPartial:   "Partial: 3 of 4 questions answered, 1 without an answer.",
			pipeline.JobCancelled: "Cancelled: 3 of 4 questions answered before it was stopped.",
			pipeline.JobFailed:    "Failed: 3 of 4 questions answered, 1 without an answer.",
		} {
			d := data(t, lacking(status))
			out := page(t, d)
			says(t, out, headline, "Reason: the content filter refused.", "Not judged in full: 1 of 2 questions have no answer.", "content filter", "not judged in full: 1 of 2 questions")
			if n := strings.Count(out, "Nothing found"); n != 2 { // the law, by category and by analyst
				t.Errorf("%s: nothing found is said %d times, want 2", status, n)
			}
			if strings.Contains(out, "nothing was found") || strings.Contains(out, "Complete") {
				t.Errorf("%s: the report looks complete", status)
			}
		}
	})
	t.Run("a missing call that may find anything leaves every category open", func(t *testing.T) {
		d := data(t, lacking(pipeline.JobPartial), func(d *report.Data) { d.Definition.Stages[0].Calls[0].Category = "" })
		if out := page(t, d); strings.Count(out, "Nothing found") != 1 { // the analyst of the law alone
			t.Error("a category is said to be clean although a call about it may be missing")
		}
	})
	t.Run("a job that failed without a result has a report", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Text, d.Journals = "", nil
			d.Result = pipeline.Result{Job: d.Result.Job, Status: pipeline.JobFailed, Reason: pipeline.Fail(pipeline.Lost, "worker died 3 times")}
		})
		out := page(t, d)
		says(t, out, "Failed: nothing was judged.", "worker died 3 times", "Not judged.", "There is no text")
		if strings.Contains(out, "Nothing found") {
			t.Error("it says that nothing was found")
		}
	})
	t.Run("a cancelled job names the stage at which each task stopped", func(t *testing.T) {
		d := data(t, lacking(pipeline.JobCancelled), func(d *report.Data) {
			d.Result.Tasks = []pipeline.TaskEnd{{Task: pipeline.WorkTask(1), Status: pipeline.TaskCancelled, Label: "cancelled-at-stage-1", Stages: 1}}
		})
		says(t, page(t, d), "cancelled-at-stage-1", "work#00001")
	})
	t.Run("chunks that do not tile the text hide nothing of it", func(t *testing.T) {
		d := data(t, func(d *report.Data) { d.Result.Manifest.Chunks[1].Start++ })
		if got := words(t, page(t, d)); got != text {
			t.Errorf("got text %q", got)
		}
	})
	t.Run("hundreds of tasks that were given up are a page of bounded size that says so", func(t *testing.T) {
		d := data(t, lacking(pipeline.JobPartial), func(d *report.Data) {
			for n := range 500 {
				d.Result.Tasks = append(d.Result.Tasks, pipeline.TaskEnd{Task: pipeline.WorkTask(n), Status: pipeline.TaskAbandoned, Stages: 1})
			}
		})
		out := page(t, d)
		says(t, out, "The first 100 of 500")
		if n := strings.Count(out, "<td>work#"); n != 100 {
			t.Errorf("%d are shown, want 100", n)
		}
	})
	t.Run("hundreds of chunks and thousands of tries make a page of bounded size", func(t *testing.T) {
		d := data(t, func(d *report.Data) {
			d.Result.Attempts, d.Journals = nil, nil
			for n := range 1000 {
				d.Result.Attempts = append(d.Result.Attempts, pipeline.Record{Task: pipeline.WorkTask(n), ClaimedAt: pipelinetest.T0, EndedAt: pipelinetest.T0 + 1000, Outcome: pipeline.FailedNow})
				j := pipeline.Journal{Task: pipeline.WorkTask(n)}
				for i := range 20 {
					j.Tries = append(j.Tries, pipeline.Try{At: pipelinetest.T0 + pipeline.Instant(i), Failure: pipeline.Fail(pipeline.Ambiguous, "cut")})
				}
				d.Journals = append(d.Journals, j)
			}
		})
		out := page(t, d)
		if lanes, dots := strings.Count(out, `class="rail"`), strings.Count(out, `class="dot`); lanes > 200 || dots > 1500 {
			t.Errorf("%d lanes and %d tries are drawn one by one", lanes, dots)
		}
	})
}

func TestMarkdown(t *testing.T) {
	t.Run("it says the same, and nothing of the document becomes markup", func(t *testing.T) {
		var out bytes.Buffer
		d := data(t, lacking(pipeline.JobPartial), func(d *report.Data) {
			d.Result.Findings = []pipeline.Finding{finding(t, pipeline.High, "<script>alert(1)</script>", 1)}
		})
		if err := report.Markdown(&out, d); err != nil {
			t.Fatal(err)
		}
		says(t, out.String(), "**Partial: 3 of 4 questions answered, 1 without an answer.**", "### high (1)", `because \*it\* is`, "&lt;script&gt;",
			"Not judged in full: 1 of 2", "Nothing found in 2 questions.", "| 1 | refused: content filter | 1 | s1c1 |", "$0 spent", "model scripted@1")
		if strings.Contains(out.String(), "<script") {
			t.Error("markup of the document is in it")
		}
	})
}

func TestJSON(t *testing.T) {
	t.Run("both offsets of every finding hold its quote, in their own units", func(t *testing.T) {
		var out bytes.Buffer
		quotes := []pipeline.Finding{
			finding(t, pipeline.High, "👩‍👩‍👧", 1), finding(t, pipeline.High, "ten & more", 1), finding(t, pipeline.Low, "א 漢 text.", 1),
		}
		if err := report.JSON(&out, data(t, func(d *report.Data) { d.Result.Findings = quotes })); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Offsets  string
			Status   string
			Findings []struct {
				Quote      string
				Start, End int
				UTF16Start int `json:"utf16_start"`
				UTF16End   int `json:"utf16_end"`
			}
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		units := utf16.Encode([]rune(text))
		for _, f := range got.Findings {
			if s := text[f.Start:f.End]; s != f.Quote {
				t.Errorf("bytes %d to %d hold %q, want %q", f.Start, f.End, s, f.Quote)
			}
			if s := string(utf16.Decode(units[f.UTF16Start:f.UTF16End])); s != f.Quote {
				t.Errorf("units %d to %d hold %q, want %q", f.UTF16Start, f.UTF16End, s, f.Quote)
			}
		}
		if len(got.Findings) != 3 || !strings.Contains(got.Offsets, "UTF-16") || got.Status != "completed" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("offsets are right far into a long text", func(t *testing.T) {
		long := strings.Repeat("é👍 a ", 3000) + "here"
		var out bytes.Buffer
		d := data(t, func(d *report.Data) {
			d.Text = long
			d.Result.Findings = []pipeline.Finding{{Quote: "here", Start: len(long) - 4, End: len(long), Match: pipeline.MatchExact, Severity: pipeline.Low}}
		})
		if err := report.JSON(&out, d); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`"utf16_end": %d`, len(utf16.Encode([]rune(long))))
		says(t, out.String(), want)
	})
	t.Run("what is missing and what was not judged in full is there", func(t *testing.T) {
		var out bytes.Buffer
		if err := report.JSON(&out, data(t, lacking(pipeline.JobPartial))); err != nil {
			t.Fatal(err)
		}
		says(t, out.String(), `"status": "partial"`, `"judged_in_full": false`, `"kind": "refused"`, `"findings": []`)
	})
}
