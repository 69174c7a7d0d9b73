package pipelines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"holdfast/pkg/pipeline"
)

func stageCounts(d pipeline.Definition) map[string]int {
	counts := map[string]int{}
	for _, s := range d.Stages {
		counts[s.Name] += len(s.Calls)
	}
	return counts
}

func contractReview(t *testing.T, profile string) pipeline.Definition {
	t.Helper()
	d, err := Load("contract-review", profile)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContractReview(t *testing.T) {
	full, compact := contractReview(t, ""), contractReview(t, "compact")

	t.Run("full asks 116 calls a chunk in five stages", func(t *testing.T) {
		want := map[string]int{"prime": 1, "score": 12, "check": 88, "consolidate": 11, "verify": 4}
		if got := stageCounts(full); full.Calls() != 116 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %d calls, %v, want 116, %v", full.Calls(), got, want)
		}
		if full.Stages[0].Name != "prime" || full.Stages[4].Name != "verify" {
			t.Errorf("stages begin with %s and end with %s", full.Stages[0].Name, full.Stages[4].Name)
		}
	})
	t.Run("compact asks 28", func(t *testing.T) {
		want := map[string]int{"prime": 1, "score": 12, "consolidate": 11, "verify": 4}
		if got := stageCounts(compact); compact.Calls() != 28 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %d calls, %v, want 28, %v", compact.Calls(), got, want)
		}
	})
	t.Run("the profiles are two definitions", func(t *testing.T) {
		if full.Key() == compact.Key() || full.ID() == compact.ID() {
			t.Errorf("full and compact share %s or %s", full.Key(), full.ID())
		}
	})
	t.Run("loading twice gives the same fingerprint", func(t *testing.T) {
		if again := contractReview(t, "full"); again.Key() != full.Key() {
			t.Errorf("got %s, want %s", again.Key(), full.Key())
		}
	})
	t.Run("it is stored and read back unchanged", func(t *testing.T) {
		again, err := pipeline.DecodeDefinition(full.Encode())
		if err != nil || again.Key() != full.Key() {
			t.Errorf("got %s, %v, want %s", again.Key(), err, full.Key())
		}
	})
	t.Run("each consolidation stands for its analyst's eight checks", func(t *testing.T) {
		for _, a := range full.Analysts {
			c, _, ok := full.Find("consolidate." + a.ID)
			if !ok || len(c.Uses) != 8 || !slices.Equal(c.Uses, c.Replaces) {
				t.Errorf("%s uses %v and replaces %v", a.ID, c.Uses, c.Replaces)
			}
		}
	})
	t.Run("every check has all positions and a severity", func(t *testing.T) {
		for _, c := range full.Stages[2].Calls {
			for _, field := range []string{"id: ", "question: ", "preferred: ", "acceptable: ", "reject: ", "severity: "} {
				if !strings.Contains("\n"+c.Vars["position"], "\n"+field) {
					t.Errorf("%s has no %q", c.ID, field)
				}
			}
			_, severity, _ := strings.Cut(c.Vars["position"], "\nseverity: ")
			if !pipeline.Severity(severity).Valid() {
				t.Errorf("%s: %q is no severity", c.ID, severity)
			}
		}
	})
	t.Run("no call is gated", func(t *testing.T) {
		for _, s := range full.Stages {
			for _, c := range s.Calls {
				if c.Gate != nil {
					t.Errorf("%s has a gate", c.ID)
				}
			}
		}
	})
	t.Run("the findings schema knows exactly the categories", func(t *testing.T) {
		var want []string
		for _, c := range full.Categories {
			want = append(want, c.ID)
		}
		var schema struct {
			Properties struct {
				Findings struct {
					Items struct {
						Properties struct{ Category struct{ Enum []string } }
					}
				}
			}
		}
		for _, name := range []string{"findings", "obligations"} {
			if err := json.Unmarshal(full.Schemas[name], &schema); err != nil {
				t.Fatal(err)
			}
			if got := schema.Properties.Findings.Items.Properties.Category.Enum; !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
	})
	t.Run("every category's presence is its score", func(t *testing.T) {
		for _, c := range full.Categories {
			call, stage, ok := full.Find(c.Presence)
			if !ok || stage != 2 || call.Value != "score" || c.PresenceMin <= 0 {
				t.Errorf("%s: presence %q in stage %d with value %q from %v", c.ID, c.Presence, stage, call.Value, c.PresenceMin)
			}
		}
	})
}

// TestPrompts renders every call as the engine does.
func TestPrompts(t *testing.T) {
	for _, profile := range []string{"full", "compact"} {
		d := contractReview(t, profile)
		for _, s := range d.Stages {
			for _, c := range s.Calls {
				text := prompted(t, d, c)
				if first, _, _ := strings.Cut(text, "\n"); first != "Call: "+c.ID {
					t.Errorf("%s: the first line is %q", c.ID, first)
				}
				if reject := between(c.Vars["position"], "reject: ", "\n"); !strings.Contains(text, reject) {
					t.Errorf("%s: the prompt does not hold the position %q", c.ID, reject)
				}
			}
		}
	}
}

func between(s, begin, end string) string {
	_, s, _ = strings.Cut(s, begin)
	s, _, _ = strings.Cut(s, end)
	return s
}

func prompted(t *testing.T, d pipeline.Definition, c pipeline.Call) string {
	t.Helper()
	replies := map[string]string{}
	for _, id := range c.Uses {
		replies[id] = `{"findings":[]}`
	}
	var b bytes.Buffer
	parsed := template.Must(template.New("").Option("missingkey=error").Parse(d.Prompts[c.Prompt]))
	if err := parsed.Execute(&b, pipeline.PromptData{Vars: c.Vars, Replies: replies}); err != nil {
		t.Fatalf("%s: %v", c.ID, err)
	}
	for id := range replies {
		if !strings.Contains(b.String(), id) {
			t.Errorf("%s does not show the reply of %s", c.ID, id)
		}
	}
	return b.String()
}

func TestExample(t *testing.T) {
	d, err := Open(filepath.Join("examples", "support-tickets.yaml"), "")
	if err != nil {
		t.Fatal(err)
	}
	if d.Calls() != 4 || len(d.Stages) != 2 || d.ID() != "support-tickets@1" {
		t.Errorf("got %s with %d calls in %d stages, want support-tickets@1 with 4 in 2", d.ID(), d.Calls(), len(d.Stages))
	}
	if c, _, _ := d.Find("sum-up"); !slices.Equal(c.Uses, []string{"find.outage", "find.data-loss", "find.churn"}) {
		t.Errorf("sum-up uses %v", c.Uses)
	}
	if d.Chunking != defaultChunking {
		t.Errorf("got %+v, want the default chunking", d.Chunking)
	}
}

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ name, open, profile, want string }{
		{"an unknown name lists the shipped ones", "contract-revue", "", `there is no pipeline "contract-revue"; the shipped ones are contract-review, and a file of your own ends in .yaml`},
		{"a missing file is named", "no/such.yaml", "", "there is no pipeline file no/such.yaml; the shipped pipelines are contract-review"},
		{"a folder is told apart", folder, "", folder + " is a folder; name the YAML file in it, for example " + filepath.Join(folder, "pipeline.yaml")},
		{"an unknown profile lists those that there are", "contract-review", "tiny", `contract-review/pipeline.yaml:7: there is no profile "tiny"; the profiles are full, compact`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Open(c.open, c.profile); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	t.Run("an unreadable file is refused, not read in part", func(t *testing.T) {
		huge := filepath.Join(folder, "huge.yaml")
		if err := os.WriteFile(huge, bytes.Repeat([]byte("# x\n"), maxFile/4+1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(huge, ""); err == nil || !strings.Contains(err.Error(), "larger than 4 MB") {
			t.Errorf("got %v, want it to be too large", err)
		}
	})
}

func TestSampleContract(t *testing.T) {
	const size = 84618
	if got := len(SampleContract()); got != size {
		t.Errorf("got %d bytes, want %d: the sample must not be changed", got, size)
	}
}
