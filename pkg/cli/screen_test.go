package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

func TestTexts(t *testing.T) {
	t.Run("a text is folded at spaces, and what follows is indented by two more", func(t *testing.T) {
		for text, want := range map[string]string{
			"":                              "",
			"short":                         "short",
			"  one two three four":          "  one two|    three|    four",
			"one  two":                      "one  two",
			"/a/path/that/has/no/space":     "/a/path/that/has/no/space",
			"see /a/path/that/is/long once": "see|  /a/path/that/is/long|  once",
			"äöü äöü äöü ä":                 "äöü äöü äöü|  ä",
			"one\ntwo":                      "one|two",
		} {
			if got := strings.Join(fold(text, 12), "|"); got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		}
	})
	t.Run("progress fits a terminal of 80 columns", func(t *testing.T) {
		p := progress{
			Job: pipeline.Job{Status: pipeline.JobRunning}, Chunks: 19, Ended: 18, Cells: 2204, Done: 2203, Claimed: 12, Deferrals: 3,
			Tries: 2340, Reused: 120, Cost: 8_360_000_000, Deaths: 1, Failures: map[pipeline.Kind]int{"throttled": 70, "unavailable": 22, "malformed": 9},
		}
		model := pipeline.ModelInfo{Free: true, PricedAs: "claude-sonnet-5-5"}
		for _, line := range progressLines(p, model, 100*time.Second, 77) {
			if n := utf8.RuneCountInString(line); n > 77 {
				t.Errorf("%d columns: %s", n, line)
			}
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
		for _, text := range []string{"x", "-1", "0", "5abc", "nan", "inf", "1e30", "$"} {
			if got, err := parseMoney(text); err == nil {
				t.Errorf("%q: got %d, want an error", text, got)
			}
		}
	})
}
