package report

import (
	_ "embed" // the page and its style
	"fmt"
	"html/template"
	"io"
	"strings"

	"holdfast/pkg/pipeline"
)

//go:embed report.html.tmpl
var pageText string

//go:embed report.css
var pageStyle string

// page is what the template shows.
type page struct {
	Data
	Style      template.CSS
	Headline   string
	Caution    string
	Notes      []string
	NoFindings string
	Money      string
	Model      string
	When       string
	Whole      bool
	Severities []severityCount
	Groups     []group
	Unplaced   []numbered
	Parts      []part
	Changed    string
	Finds      bool
	Items      bool
	Part       string
	By         string
	ByWhat     string
	Categories []row
	Analysts   []row
	Gaps       []gap
	Stopped    []pipeline.TaskEnd
	Chart      timeline
	HasChart   bool
	Answered   []answerGroup
	AnswerNote string
	Unfold     bool // the answers
}

// group is the findings of one severity that have a place, or are about the whole document.
type group struct {
	Severity pipeline.Severity
	Findings []numbered
}

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"count":   pipeline.Count,
	"percent": percent,
	"some":    some[int],
	"calls":   some[string],
	"f1":      func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"clip":    func(n int, text string) string { return pipeline.Cut(text, n) },
	"asked":   func(d Data, n int) string { return d.asked(n) },
	"was":     was,
	"plural":  plural,
	"lower":   strings.ToLower,
	"total":   func(f pipeline.Spend) int { return sum(f.Failures) },
	"day":     func(i pipeline.Instant) string { return i.Time().Format("2 January 2006, 15:04 UTC") },
}).Parse(pageText))

func sum(failures map[pipeline.Kind]int) int {
	n := 0
	for _, k := range failures {
		n += k
	}
	return n
}

// HTML writes the report as one page that needs nothing else: no network, no script.
func HTML(w io.Writer, d Data) error {
	p, err := d.page()
	if err == nil {
		err = pageTemplate.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("write the report of job %s: %w", d.Result.Job.ID, err)
	}
	return nil
}

func (d Data) page() (page, error) {
	findings := d.number()
	p := page{
		Data: d, Style: template.CSS(pageStyle), //nolint:gosec // our own file, embedded
		Headline: d.headline(), Caution: d.caution(), Notes: d.notes(), NoFindings: d.noFindings(), Money: d.money(), Model: d.modelName(),
		Whole:      d.Result.Status == pipeline.JobCompleted,
		Severities: bySeverity(d.Result.Findings), Parts: d.parts(findings),
		Changed: d.changed(), Finds: d.finds(), Items: d.items(), Part: d.part(), By: d.by(), ByWhat: d.byWhat(),
		Categories: d.categories(), Analysts: d.analysts(), Gaps: d.gaps(),
	}
	p.Groups, p.Unplaced = grouped(findings)
	for _, end := range d.Result.Tasks {
		if end.Status != pipeline.TaskDone {
			p.Stopped = append(p.Stopped, end)
		}
	}
	p.Chart, p.HasChart = d.chart()
	answers, shown, all, err := d.shownAnswers()
	p.Answered, p.AnswerNote, p.Unfold = answers, shownOf(shown, all), d.items() || len(answers) <= 5
	return p, err
}

func grouped(findings []numbered) (groups []group, unplaced []numbered) {
	for _, severity := range pipeline.Severities {
		g := group{Severity: severity}
		for _, f := range findings {
			if f.Severity == severity && f.Match != pipeline.MatchUngrounded {
				g.Findings = append(g.Findings, f)
			}
		}
		if len(g.Findings) > 0 {
			groups = append(groups, g)
		}
	}
	for _, f := range findings {
		if f.Match == pipeline.MatchUngrounded || !f.Severity.Valid() {
			unplaced = append(unplaced, f)
		}
	}
	return groups, unplaced
}
