package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
)

const sampleContract = "../pipelines/documents/cuad-worldwide-reseller.txt"

// playbook is how grave the playbook takes what each check rejects.
func playbook(t *testing.T, d pipeline.Definition) map[string]pipeline.Severity {
	t.Helper()
	severities := map[string]pipeline.Severity{}
	for _, stage := range d.Stages {
		for _, call := range stage.Calls {
			if _, after, found := strings.Cut("\n"+call.Vars["position"], "\nseverity: "); found {
				word, _, _ := strings.Cut(after, "\n")
				severities[call.ID] = pipeline.Severity(strings.TrimSpace(word))
			}
		}
	}
	if len(severities) != 88 {
		t.Fatalf("%d checks have a severity, want 88", len(severities))
	}
	return severities
}

func TestFindingsOfTheSampleContract(t *testing.T) {
	d := newDesk(t, "")
	o := d.runs(exitCompleted, sampleContract, "--profile", "full", "--concurrency", "48")
	definition, err := pipelines.Load("contract-review", "full")
	d.must(err)
	severities := playbook(t, definition)
	text, err := os.ReadFile(sampleContract)
	d.must(err)
	body, err := os.ReadFile(filepath.Join(d.out, "findings.json"))
	d.must(err)
	var report struct {
		Findings, Withdrawn []pipeline.Finding
	}
	d.must(json.Unmarshal(body, &report))
	if len(report.Findings) < 50 {
		t.Fatalf("got %d findings, want what a contract of 85 kB has", len(report.Findings))
	}
	t.Run("a consolidated finding names the checks that it is made of, and is no graver than their playbook", func(t *testing.T) {
		for _, f := range report.Findings {
			analyst, consolidated := strings.CutPrefix(f.Call, "consolidate.")
			if !consolidated {
				continue
			}
			gravest := pipeline.Info
			for _, call := range f.Contributors {
				if severity := severities[call]; severity.Rank() < gravest.Rank() {
					gravest = severity
				}
			}
			if !slices.ContainsFunc(f.Contributors, func(call string) bool { return strings.HasPrefix(call, "check."+analyst+".") }) {
				t.Errorf("%s %q has contributors %v, want a check of its analyst", f.Call, f.Title, f.Contributors)
			}
			if f.Severity.Rank() < gravest.Rank() {
				t.Errorf("%s %q is %s, its checks are %s at most", f.Call, f.Title, f.Severity, gravest)
			}
		}
	})
	t.Run("each says who judged, and its place holds its quote", func(t *testing.T) {
		for _, f := range report.Findings {
			if !strings.HasPrefix(f.Model, "offline-rules-1@") {
				t.Errorf("%q is said to come from %q", f.Title, f.Model)
			}
			if f.Grounded() && string(text[f.Start:f.End]) != f.Quote {
				t.Errorf("%q: bytes %d to %d hold %q, want %q", f.Title, f.Start, f.End, text[f.Start:f.End], f.Quote)
			}
		}
	})
	t.Run("what no longer stands was merged into one that does, or is withdrawn with a reason", func(t *testing.T) {
		stays, withdrawn := map[string]bool{}, map[string]bool{}
		for _, f := range report.Findings {
			stays[f.ID] = true
		}
		for _, f := range report.Withdrawn {
			withdrawn[f.ID] = true
		}
		s := d.system()
		last := map[string]pipeline.Finding{}
		for after := int64(0); ; {
			groups, err := s.Backend.Store.Findings(t.Context(), o.Job, after, 100)
			d.must(err)
			if len(groups) == 0 {
				break
			}
			for _, g := range groups {
				after = g.Seq
				for _, f := range g.Findings {
					last[f.ID] = f
				}
			}
		}
		merged := 0
		for id, f := range last {
			into, part := strings.CutPrefix(f.Why, "part of ")
			switch {
			case f.State == pipeline.Confirmed && stays[id]:
			case f.State == pipeline.Withdrawn && part && stays[into]:
				merged++
			case f.State == pipeline.Withdrawn && withdrawn[id] && f.Why != "":
			default:
				t.Errorf("%s %q is %s because %q", f.Call, f.Title, f.State, f.Why)
			}
		}
		if merged < len(report.Findings)/2 {
			t.Errorf("%d findings were merged into %d: fewer than there are checks behind them", merged, len(report.Findings))
		}
	})
}
