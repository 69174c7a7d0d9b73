package split

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

var standard = pipeline.Chunking{Target: 1000, Max: 1300, Overlap: 80, MaxChunks: 5000}

func sample(t testing.TB) string {
	t.Helper()
	body, err := os.ReadFile("../pipelines/documents/cuad-worldwide-reseller.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func cut(t testing.TB, text string, c pipeline.Chunking) []pipeline.Chunk {
	t.Helper()
	chunks, err := Chunks(text, c)
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, text, c, chunks)
	return chunks
}

// mustHold checks what is promised of any chunks of any text.
func mustHold(t testing.TB, text string, c pipeline.Chunking, chunks []pipeline.Chunk) {
	t.Helper()
	o := outlineOf(text)
	at := 0
	for i, k := range chunks {
		if k.Index != i || k.Start != at || k.End <= k.Start || k.End > len(text) {
			t.Fatalf("chunk %d is %+v: cores must tile the text, the next byte is %d of %d", i, k, at, len(text))
		}
		at = k.End
		if k.Context > k.Start || k.Context < 0 || i == 0 && k.Context != 0 || i > 0 && k.Context < chunks[i-1].Start {
			t.Fatalf("chunk %d: context begins at %d, want it before %d within the chunk before", i, k.Context, k.Start)
		}
		for _, p := range []int{k.Context, k.Start, k.End} {
			if p < len(text) && !utf8.RuneStart(text[p]) {
				t.Fatalf("chunk %d: %d is inside of a character", i, p)
			}
		}
		if got := pipeline.EstimateTokens(text[k.Context:k.End]); got != k.Tokens || got > c.Max {
			t.Fatalf("chunk %d: has %d tokens, says %d, may have %d", i, got, k.Tokens, c.Max)
		}
		if got := pipeline.EstimateTokens(text[k.Context:k.Start]); got > c.Overlap {
			t.Fatalf("chunk %d: its context has %d tokens, may have %d", i, got, c.Overlap)
		}
		if k.Context < k.Start && o.strengthAt(k.Context) <= anywhere {
			t.Fatalf("chunk %d: its context begins inside of a word: %q", i, text[k.Context:k.Start])
		}
		if len(k.Heading) > maxHeading || !utf8.ValidString(k.Heading) {
			t.Fatalf("chunk %d: heading %q", i, k.Heading)
		}
	}
	if at != len(text) {
		t.Fatalf("the chunks end at %d of %d bytes", at, len(text))
	}
}

func TestSampleContract(t *testing.T) {
	text := sample(t)
	chunks := cut(t, text, standard)
	t.Run("it has about 20 chunks", func(t *testing.T) {
		if n := len(chunks); n < 18 || n > 22 {
			t.Errorf("got %d chunks, want about 20", n)
		}
	})
	t.Run("every chunk begins a section or a paragraph, and its context a sentence or clause", func(t *testing.T) {
		o := outlineOf(text)
		for _, c := range chunks[1:] {
			if o.strengthAt(c.Start) < atParagraph {
				t.Errorf("chunk %d begins with %q", c.Index, text[c.Start:c.Start+40])
			}
			if c.Context < c.Start && o.strengthAt(c.Context) < atComma {
				t.Errorf("the context of chunk %d begins with %q", c.Index, text[c.Context:c.Start])
			}
		}
	})
	t.Run("a place knows the headings that it stands under", func(t *testing.T) {
		got := outlineOf(text).path(strings.Index(text, "8.2  TERMINATION") + 1000)
		if want := "EXHIBIT 10.2 / 8 TERM AND TERMINATION / 8.2 TERMINATION AT TOUCHSTAR OPTION"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("the same text is cut the same", func(t *testing.T) {
		if again := cut(t, text, standard); !slices.Equal(again, chunks) {
			t.Error("got other chunks")
		}
	})
}

// What a chunk says to a model decides its reply keys: after an edit nearly all of it must be the same.
func TestEditsStayLocal(t *testing.T) {
	text := sample(t)
	o := outlineOf(text)
	var sentences []int
	for p := range text {
		if o.strengthAt(p) >= atSentence {
			sentences = append(sentences, p)
		}
	}
	before := map[string]bool{}
	say := func(text string, c pipeline.Chunk) string {
		return strings.Join([]string{c.Heading, text[c.Context:c.Start], text[c.Start:c.End]}, "\x00")
	}
	for _, c := range cut(t, text, standard) {
		before[say(text, c)] = true
	}
	const added = "The parties shall review this provision together every quarter. "
	edits, many := 0, 0
	for i := 8; i+1 < len(sentences)/2; i += 5 {
		p, next := sentences[i], sentences[i+1]
		for name, edited := range map[string]string{
			"insert": text[:p] + added + text[p:], "delete": text[:p] + text[next:], "replace": text[:p] + added + text[next:],
		} {
			changed := 0
			for _, c := range cut(t, edited, standard) {
				if !before[say(edited, c)] {
					changed++
				}
			}
			edits++
			if changed > 3 {
				many++
			}
			if changed > 6 {
				t.Errorf("%s at %d (%.40q): %d chunks changed", name, p, text[p:next], changed)
			}
		}
	}
	if edits < 60 || many*20 > edits {
		t.Errorf("got %d of %d edits that changed more than 3 chunks, want at most 1 in 20", many, edits)
	}
}

func TestCaseK02AnyTextIsCut(t *testing.T) {
	prose := strings.Repeat("The fee is due within 30 days. It bears interest; see Section 3, which applies. ", 400)
	for _, c := range []struct {
		name, text string
		chunking   pipeline.Chunking
	}{
		{"one character", "x", standard},
		{"3 MB without the end of a sentence", strings.Repeat("lorem ipsum dolor ", 3<<20/18), standard},
		{"a word of 200,000 characters", strings.Repeat("a", 200_000), standard},
		{"5 MB in one line", strings.Repeat("The fee is due. See Section 3 of it. ", 5<<20/37), standard},
		{"5 MB of line breaks", strings.Repeat("\n", 5<<20) + "x", standard},
		{"a text in Japanese", strings.Repeat("甲は乙に対し、本契約に基づく業務を委託する。", 800), standard},
		{"emoji with joiners", strings.Repeat("\U0001F469\u200d\U0001F4BB", 3000), standard},
		{"accents without letters", strings.Repeat("\u0301", 20_000), standard},
		{"nothing but numbers of sections", strings.Repeat("1. A ", 20_000), standard},
		{"tiny chunks", prose[:4000], pipeline.Chunking{Target: 1, Max: 1, MaxChunks: 99_999}},
		{"an overlap just under the target", prose, pipeline.Chunking{Target: 100, Max: 100, Overlap: 99, MaxChunks: 99_999}},
		{"a maximum far over the target", prose, pipeline.Chunking{Target: 100, Max: 5000, Overlap: 20, MaxChunks: 99_999}},
		{"exactly the maximum", strings.Repeat("a", 6*1300), standard},
		{"one token more than the maximum", strings.Repeat("a", 6*1300+1), standard},
		{"the maximum less the overlap, and one", strings.Repeat("a", 6*(1300-80)+6), standard},
		{"a line break at the limit", strings.Repeat("a", 6*1300-1) + "\n" + strings.Repeat("b", 6*1300-1) + "\n" + "c", standard},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.chunking.MaxChunks = 99_999
			chunks := cut(t, c.text, c.chunking)
			tokens := pipeline.EstimateTokens(c.text)
			if most := 2 + 4*tokens/max(1, c.chunking.Target-c.chunking.Overlap); len(chunks) > most {
				t.Errorf("got %d chunks of %d tokens, want at most %d", len(chunks), tokens, most)
			}
		})
	}
	t.Run("a sign of several characters stays whole where there is room", func(t *testing.T) {
		text := strings.Repeat("\U0001F469\u200d\U0001F4BB", 3000)
		for _, c := range cut(t, text, standard)[1:] {
			if !strings.HasPrefix(text[c.Start:], "\U0001F469") {
				t.Fatalf("chunk %d begins inside of a sign", c.Index)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Run("too many chunks name their limit and what to do", func(t *testing.T) {
		_, err := Chunks(sample(t), pipeline.Chunking{Target: 1000, Max: 1300, MaxChunks: 3})
		if !errors.Is(err, ErrTooManyChunks) || !strings.Contains(err.Error(), "3 chunks") || !strings.Contains(err.Error(), "max_chunks") {
			t.Errorf("got %v", err)
		}
	})
	for _, c := range []struct {
		name, text string
		chunking   pipeline.Chunking
		says       string
	}{
		{"no text", "", standard, "no text"},
		{"no UTF-8", "a\xff", standard, "UTF-8"},
		{"an overlap as large as the target", "x", pipeline.Chunking{Target: 80, Max: 100, Overlap: 80, MaxChunks: 9}, "overlap (80)"},
		{"a maximum below the target", "x", pipeline.Chunking{Target: 80, Max: 79, MaxChunks: 9}, "max (79)"},
		{"a maximum beyond any model", "x", pipeline.Chunking{Target: 80, Max: 1 << 40, MaxChunks: 9}, "at most"},
		{"no target", "x", pipeline.Chunking{Max: 100, MaxChunks: 9}, "target (0)"},
		{"no chunks allowed", "x", pipeline.Chunking{Target: 80, Max: 100}, "max_chunks (0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Chunks(c.text, c.chunking); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error with %q", err, c.says)
			}
		})
	}
}

// A cap and its exception are shown together at least once: a heading keeps its clause, and the context repeats what
// stands before a cut.
func TestCaseK03ClauseAndException(t *testing.T) {
	filler := func(n int) string {
		return strings.Repeat("The Supplier shall keep records of the Services and of each Order. ", n)
	}
	text := "1. Services. " + filler(70) + "\n\n2. Liability. " + filler(55) +
		"\n\nThe liability of the Supplier is capped at the fees of twelve months.\n\nThis does not apply to a data breach. " + filler(60) +
		"\n\n3. Term.\n\n" + filler(40)
	seen := func(parts ...string) bool {
		for _, c := range cut(t, text, standard) {
			shown := text[c.Context:c.End]
			if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(shown, p) }) {
				return true
			}
		}
		return false
	}
	if !seen("is capped at the fees", "does not apply to a data breach") {
		t.Error("no chunk shows the cap and its exception")
	}
	if !seen("3. Term.\n\nThe Supplier") {
		t.Error("a heading was cut off from its clause")
	}
}

func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	parts := []string{
		"a", "The Buyer pays. ", "\n", "\n\n", "1. Term. ", "2.1 Fees. ", "ARTICLE IV\n", "EXHIBIT B\n", "GENERAL TERMS\n\n", "; ", ", ",
		"\u00e9", "e\u0301", "\U0001F469\u200d\U0001F4BB", "\u5951\u7d04\u3002", "\u00a0", " ", strings.Repeat("x", 90), "Inc. ", "\u201cQuoted.\u201d ",
	}
	for range 400 {
		var text strings.Builder
		for range 1 + r.IntN(120) {
			text.WriteString(parts[r.IntN(len(parts))])
		}
		target := 1 + r.IntN(60)
		c := pipeline.Chunking{Target: target, Max: target + r.IntN(40), Overlap: r.IntN(target), MaxChunks: 99_999}
		cut(t, text.String(), c)
	}
}

func FuzzChunks(f *testing.F) {
	f.Add("1. Term. The term is one year.\n\n2. Fees; due, at once. \u00e9 \U0001F469\u200d\U0001F4BB", 10, 13, 3)
	f.Add("ARTICLE I\n\nSection 1.1 Scope.", 1, 1, 0)
	f.Add(strings.Repeat("a", 300), 20, 26, 19)
	f.Fuzz(func(t *testing.T, text string, target, most, overlap int) {
		c := pipeline.Chunking{Target: target, Max: most, Overlap: overlap, MaxChunks: 20_000}
		chunks, err := Chunks(text, c)
		if err != nil {
			if check(text, c) == nil && !errors.Is(err, ErrTooManyChunks) {
				t.Fatalf("a text that can be cut was refused: %v", err)
			}
			return
		}
		mustHold(t, text, c, chunks)
		tokens := pipeline.EstimateTokens(text)
		if limit := 2 + 4*tokens/max(1, target-overlap); len(chunks) > limit {
			t.Fatalf("got %d chunks of %d tokens, want at most %d", len(chunks), tokens, limit)
		}
	})
}

// Anchors are where a text is cut whatever was changed elsewhere.
func TestAnchors(t *testing.T) {
	text := sample(t)
	anchors := outlineOf(text).anchors(standard.Target, 350)
	if len(anchors) < 5 {
		t.Fatalf("got %d anchors", len(anchors))
	}
	t.Run("the text is cut at each", func(t *testing.T) {
		for _, p := range anchors {
			if !slices.ContainsFunc(cut(t, text, standard), func(c pipeline.Chunk) bool { return c.Start == p }) {
				t.Errorf("no chunk begins at the anchor %d", p)
			}
		}
	})
	t.Run("they are further apart than the radius", func(t *testing.T) {
		for i, p := range anchors[1:] {
			if n := pipeline.EstimateTokens(text[anchors[i]:p]); n < standard.Target-3 {
				t.Errorf("got %d tokens before the anchor %d, want more than %d", n, p, standard.Target)
			}
		}
	})
	t.Run("what was changed further away than the radius does not move them", func(t *testing.T) {
		edited := strings.Repeat("It was changed here. ", 40) + text[1000:]
		moved := outlineOf(edited).anchors(standard.Target, 350)
		shift := len(edited) - len(text)
		for _, p := range anchors {
			if pipeline.EstimateTokens(text[1000:p]) > 2*standard.Target && !slices.Contains(moved, p+shift) {
				t.Errorf("the anchor %d is gone", p)
			}
		}
	})
}
