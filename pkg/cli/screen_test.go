package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
)

func TestTexts(t *testing.T) {
	t.Run("a text is folded at spaces, and what follows is indented by two more; a command stays whole", func(t *testing.T) {
		for text, want := range map[string]string{
			"":                              "",
			"short":                         "short",
			"  one two three four":          "  one two|    three|    four",
			"one  two":                      "one  two",
			"/a/path/that/has/no/space":     "/a/path/that/has/no/space",
			"see /a/path/that/is/long once": "see|  /a/path/that/is/long|  once",
			"äöü äöü äöü ä":                 "äöü äöü äöü|  ä",
			"one\ntwo":                      "one|two",
			"go on: mine why abc --store x": "go on:|    mine why abc --store x",
			"one two three: mine why\none":  "one two|  three:|    mine why|one",
			"mine why":                      "mine why",
		} {
			if got := strings.Join(fold(text, "mine", 12), "|"); got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		}
	})
	t.Run("progress fits a terminal of 80 columns", func(t *testing.T) {
		p := progress{
			Progress: view.Progress{Job: pipeline.Job{Status: pipeline.JobRunning}, Chunks: 19, Ended: 18, Cells: 2204, Done: 2203, Claimed: 12, Deferrals: 3},
			Tries:    2340, Reused: 120, Cost: 8_360_000_000, Deaths: 1, Failures: map[pipeline.Kind]int{"throttled": 70, "unavailable": 22, "malformed": 9},
		}
		model := pipeline.ModelInfo{Free: true, PricedAs: "claude-sonnet-5-5"}
		for _, line := range progressLines(p, model, 0, 100*time.Second, 77) {
			if n := utf8.RuneCountInString(line); n > 77 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	})
	t.Run("progress names why tasks wait, and tells no counts that nobody counted", func(t *testing.T) {
		p := progress{Progress: view.Progress{Job: pipeline.Job{Status: pipeline.JobRunning}, Chunks: 1, Cells: 1, Setbacks: pipeline.Setbacks([]pipeline.Task{
			{Status: pipeline.TaskPending, ReadyAt: 24_000, Reason: pipeline.Fail(pipeline.Broken, "exit 1:\nno such host")},
		})}}
		text := strings.Join(progressLines(p, pipeline.ModelInfo{Handler: true}, 1, time.Second, 77), "; ")
		if want := "held back: 1 task, next attempt in 24 s: broken: exit 1: no such host"; !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
		if strings.Contains(text, "0 tries") || strings.Contains(text, "stored replies") {
			t.Errorf("got %q of a job whose workers nobody listens to", text)
		}
		p.Live, p.Tries = true, 3
		if text := strings.Join(progressLines(p, pipeline.ModelInfo{}, 1, time.Second, 77), "; "); !strings.Contains(text, "3 tries") {
			t.Errorf("got %q, want the tries", text)
		}
	})
	t.Run("a run whose own workers serve the model does not tell of a lack of workers; others do", func(t *testing.T) {
		p := progress{Progress: view.Progress{Setbacks: []pipeline.Setback{{Kind: pipeline.Busy, Cause: "start one", Unserved: true}, {Kind: pipeline.Busy, Cause: "nobody answers"}}}}
		told := func() string { return strings.Join(progressLines(p, pipeline.ModelInfo{}, 1, time.Second, 77), "; ") }
		if text := told(); !strings.Contains(text, "start one") {
			t.Errorf("got %q of a job that nobody works on", text)
		}
		var own tally
		before := p.Setbacks
		own.over(&p)
		if text := told(); strings.Contains(text, "start one") || !strings.Contains(text, "nobody answers") || before[0].Cause != "start one" {
			t.Errorf("got %q, want what else holds the job back", text)
		}
	})
	t.Run("a line that is too long for its terminal is cut, not wrapped", func(t *testing.T) {
		if got := shorten("äöü spend", 5); got != "äöü s" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("money is a plain number of dollars", func(t *testing.T) {
		for text, want := range map[string]pipeline.Money{"2.50": 2_500_000_000, "$1": 1_000_000_000, "": 0} {
			if got, err := parseMoney(text); err != nil || got != want {
				t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
			}
		}
		for _, text := range []string{"x", "-1", "0", "5abc", "nan", "inf", "1e30", "1e-12", "$"} {
			if got, err := parseMoney(text); err == nil {
				t.Errorf("%q: got %d, want an error", text, got)
			}
		}
	})
}
