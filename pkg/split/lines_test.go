package split

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

func linesOf(t *testing.T, text string) []string {
	t.Helper()
	chunks, err := Chunks(text, pipeline.Chunking{Lines: true, MaxChunks: 1000})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var lines []string
	at := 0
	for n, c := range chunks {
		if c.Index != n || c.Start != at || c.Context != c.Start || c.End <= c.Start || c.Tokens < 1 {
			t.Errorf("%q: chunk %d is %+v, want it to begin at %d and to have no context", text, n, c, at)
		}
		lines = append(lines, pipeline.Line(text[c.Start:c.End]))
		at = c.End
	}
	if at != len(text) {
		t.Errorf("%q: the chunks end at %d, want %d", text, at, len(text))
	}
	return lines
}

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"one":                        {"one"},
		"one\n":                      {"one"},
		"one\ntwo":                   {"one", "two"},
		"\n \n\tone \n\n\ntwo\n\n  ": {"\tone ", "two"},
		"same\nsame\nsame\n":         {"same", "same", "same"},
		"one\r\ntwo\r\n":             {"one", "two"},
		"größe\n\u00a0\nnaïve\n":     {"größe", "naïve"},
	} {
		if got := linesOf(t, text); strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Whatever the lines are, none is lost, none is made up, and the chunks tile the text.
func TestLinesOfAnyText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b c", " ", "\t", "\n", "\n", "\r\n", "é", "\u2028", "x\ny"}
	for range 5000 {
		var text strings.Builder
		for range 1 + r.IntN(20) {
			text.WriteString(parts[r.IntN(len(parts))])
		}
		var want []string
		for _, line := range strings.Split(text.String(), "\n") {
			if strings.TrimSpace(line) != "" {
				want = append(want, strings.TrimSuffix(line, "\r"))
			}
		}
		if len(want) == 0 {
			if _, err := Chunks(text.String(), pipeline.Chunking{Lines: true, MaxChunks: 1000}); err == nil {
				t.Fatalf("%q: blank lines were taken for work", text.String())
			}
			continue
		}
		if got := linesOf(t, text.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%q: got %q, want %q", text.String(), got, want)
		}
	}
}

func TestTooManyLines(t *testing.T) {
	c := pipeline.Chunking{Lines: true, MaxChunks: 3}
	if chunks, err := Chunks("a\n\nb\nc\n\n", c); err != nil || len(chunks) != 3 {
		t.Errorf("got %d chunks, %v, want the three that are allowed", len(chunks), err)
	}
	if _, err := Chunks("a\nb\nc\nd", c); !errors.Is(err, ErrTooManyChunks) || !strings.Contains(err.Error(), "max_chunks") {
		t.Errorf("got %v, want that there are too many, and what to raise", err)
	}
}
