package review

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// whole is one chunk of all of a text, and chunkAt one whose core begins at the mark | and whose context before it
// begins at the mark ^.
func whole(text string) pipeline.Chunk { return pipeline.Chunk{End: len(text)} }

func TestCaseR02Places(t *testing.T) {
	for _, c := range []struct {
		name, text, quote string
		want              string // what the place must hold; "" = no place
		match             pipeline.Match
	}{
		{"word for word", "In no event shall it pay.", "no event", "no event", pipeline.MatchExact},
		{"accents before it", "Soci\u00e9t\u00e9 G\u00e9n\u00e9rale. The cap is low.", "The cap", "The cap", pipeline.MatchExact},
		{"emoji with joiners before it", "\U0001F469\u200d\U0001F4BB\U0001F468\u200d\U0001F469\u200d\U0001F467 signs. The cap is low.", "the  cap", "The cap", pipeline.MatchNormalised},
		{"Chinese before it", "\u7532\u65b9\u5e94\u4ed8\u6b3e\u3002The cap is low.", "The cap is low.", "The cap is low.", pipeline.MatchExact},
		{"Chinese itself", "\u7532\u65b9\u5e94\u4ed8\u6b3e\u3002", "\u5e94\u4ed8\u6b3e", "\u5e94\u4ed8\u6b3e", pipeline.MatchExact},
		{"Hebrew", "\u05d4\u05d7\u05d5\u05d6\u05d4 \u05ea\u05e7\u05e3. The cap.", "\u05ea\u05e7\u05e3", "\u05ea\u05e7\u05e3", pipeline.MatchExact},
		{"a no-break space", "within 30\u00a0days of it", "30 days", "30\u00a0days", pipeline.MatchNormalised},
		{"a soft hyphen", "the indem\u00adnification of it", "indemnification", "indem\u00adnification", pipeline.MatchNormalised},
		{"a zero-width space", "any lia\u200bbility of it", "any liability", "any lia\u200bbility", pipeline.MatchNormalised},
		{"composed against decomposed", "the cafe\u0301 owner pays", "caf\u00e9 owner", "cafe\u0301 owner", pipeline.MatchNormalised},
		{"decomposed against composed", "the caf\u00e9 owner pays", "cafe\u0301 owner", "caf\u00e9 owner", pipeline.MatchNormalised},
		{"a ligature", "the \ufb01rst o\ufb03ce", "first office", "\ufb01rst o\ufb03ce", pipeline.MatchNormalised},
		{"line breaks and indents", "shall\n        not   exceed\nit", "shall not exceed it", "shall\n        not   exceed\nit", pipeline.MatchNormalised},
		{"straight quotes for curly ones", "the \u201cCap\u201d is low", `the "Cap" is`, "the \u201cCap\u201d is", pipeline.MatchNormalised},
		{"an apostrophe", "Supplier\u2019s fees", "Supplier's fees", "Supplier\u2019s fees", pipeline.MatchNormalised},
		{"dashes", "fees \u2014 if any \u2014 are due", "fees - if any - are due", "fees \u2014 if any \u2014 are due", pipeline.MatchNormalised},
		{"case", "IN NO EVENT SHALL IT PAY", "In no event shall", "IN NO EVENT SHALL", pipeline.MatchNormalised},
		{"quotes that the model put around it", "It shall not exceed fees. Next.", "\u201cshall not exceed fees.\u201d", "shall not exceed fees.", pipeline.MatchNormalised},
		{"punctuation at its ends", "the (\u201cCap\u201d), low", `("Cap"),`, "(\u201cCap\u201d),", pipeline.MatchNormalised},
		{"the word and not a part of one", "This is low. It is.", "is", "is", pipeline.MatchExact},
		{"part of a word", "the indemnification", "indemn", "", ""},
		{"part of a number", "fees of 12,500 Euro", "2,500 Euro", "", ""},
		{"a letter without its accent", "the cafe\u0301 owner", "the cafe", "", ""},
		{"part of a character", "a share of \u00bd each", "2", "", ""},
		{"other words", "The cap is low.", "The cap is high", "", ""},
		{"words left out", "The cap, as agreed, is low.", "The cap is low", "", ""},
		{"words in another order", "low is the cap", "the cap is low", "", ""},
		{"nothing", "The cap.", "", "", ""},
		{"punctuation alone", "The cap. ...", "...", "", ""},
		{"a soft hyphen alone", "The\u00adcap", "\u00ad", "", ""},
		{"longer than the text", "cap", "cap cap cap", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newAligner(c.text, whole(c.text)).find(c.quote)
			if got.match != c.match {
				t.Fatalf("got match %q, want %q", got.match, c.match)
			}
			if !got.found() {
				return
			}
			if held := c.text[got.start:got.end]; held != c.want {
				t.Errorf("got %q, want %q", held, c.want)
			}
			if c.name == "the word and not a part of one" && got.start != strings.Index(c.text, " is")+1 {
				t.Errorf("got it at %d", got.start)
			}
			units := utf16.Encode([]rune(c.text))
			from, to := len(utf16.Encode([]rune(c.text[:got.start]))), len(utf16.Encode([]rune(c.text[:got.end])))
			if held := string(utf16.Decode(units[from:to])); held != c.want {
				t.Errorf("got %q in UTF-16 units, want %q", held, c.want)
			}
		})
	}
}

func TestCoreBeforeContext(t *testing.T) {
	text := "The cap is low. Other words. THE CAP is high. The end."
	c := pipeline.Chunk{Index: 1, Context: 0, Start: strings.Index(text, "Other"), End: len(text)}
	for _, k := range []struct {
		name, quote string
		start       int
	}{
		{"a quote in the core", "Other words", strings.Index(text, "Other")},
		{"a quote in the context alone", "cap is low", 4},
		{"a quote from the context into the core", "is low. Other", 8},
		{"the core's words before the context's, where neither is word for word", "the cap", strings.Index(text, "THE")},
	} {
		t.Run(k.name, func(t *testing.T) {
			if got := newAligner(text, c).find(k.quote); got.start != k.start {
				t.Errorf("got %d, want %d", got.start, k.start)
			}
		})
	}
	t.Run("of two that are word for word, the one in the core", func(t *testing.T) {
		text := "The cap is low. The cap is low."
		if got := newAligner(text, pipeline.Chunk{Index: 1, Start: 16, End: len(text)}).find("cap is low"); got.start != 20 {
			t.Errorf("got %d, want 20", got.start)
		}
	})
	t.Run("what the model did not see is not searched", func(t *testing.T) {
		c := pipeline.Chunk{Index: 1, Context: 5, Start: 16, End: 28}
		if got := newAligner(text, c).find("The end"); got.found() {
			t.Errorf("got a place at %d", got.start)
		}
	})
}

func TestClause(t *testing.T) {
	text := "6.4 Warranty. It works.\n\n6.5 Limitation of Liability. As limited by Section\n9.1. The cap is low.\n\n7. TERM.\n\nOne year; see Section 2.2 of it.  ARTICLE VIII LAW\n\nOurs."
	c := pipeline.Chunk{End: len(text), Heading: "EXHIBIT A / 6 SALE"}
	for _, k := range []struct{ quote, want string }{
		{"It works", "6.4 Warranty"},
		{"The cap is low", "6.5 Limitation of Liability"},
		{"6.5 Limitation", "6.5 Limitation of Liability"},
		{"One year", "7 TERM"},
		{"of it", "7 TERM"},
		{"Ours", "ARTICLE VIII LAW"},
	} {
		if got := clauseAt(text, c, strings.Index(text, k.quote)); got != k.want {
			t.Errorf("%q: got %q, want %q", k.quote, got, k.want)
		}
	}
	if got := clauseAt("plain words", pipeline.Chunk{End: 11, Heading: "EXHIBIT A / 6 SALE"}, 6); got != "6 SALE" {
		t.Errorf("without a label: got %q, want the innermost heading", got)
	}
}

func FuzzAlign(f *testing.F) {
	f.Add("The cap\u00a0is \u201clow\u201d.", "cap is \"low\"", 4)
	f.Add("e\u0301\u00ad \U0001F469\u200d\U0001F4BB \ufb01", "E\u0301 fi", 0)
	f.Add("aaa aaa aaa", "aaa", 5)
	f.Fuzz(func(t *testing.T, text, quote string, core int) {
		if !utf8.ValidString(text) || !utf8.ValidString(quote) || core < 0 || core >= len(text) || !utf8.RuneStart(text[core]) {
			return
		}
		got := newAligner(text, pipeline.Chunk{Start: core, End: len(text)}).find(quote)
		const before, behind = "\u00e9 The cap. \U0001F469 ", " The end."
		n := len(before)
		far := newAligner(before+text+behind, pipeline.Chunk{Index: 9, Context: n, Start: n + core, End: n + len(text)}).find(quote)
		if got.found() && (far.start != got.start+n || far.end != got.end+n) || far.match != got.match {
			t.Fatalf("got %+v, and %d bytes further on %+v", got, n, far)
		}
		if !got.found() {
			if strings.Contains(text, quote) && strings.Trim(text, " ") == quote && strings.ContainsFunc(quote, isContent) {
				t.Fatalf("%q is not found in itself", quote)
			}
			return
		}
		held := text[got.start:got.end]
		if !utf8.ValidString(held) || held == "" {
			t.Fatalf("got %q at %d to %d", held, got.start, got.end)
		}
		if got.match == pipeline.MatchExact && held != strings.TrimSpace(quote) {
			t.Fatalf("got %q as a word for word match of %q", held, quote)
		}
		if a, b := plainOf(held).text, plainOf(quote).text; a != b {
			t.Fatalf("got %q for %q: %q is not %q", held, quote, a, b)
		}
	})
}
