package split

import (
	"slices"
	"testing"
)

func TestHeadings(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"sections and their children", "1. Term\nOne year.\n1.1 Start. Today.\n1.2 End. Tomorrow.\n2. Fees\nNone.", []string{"1 Term", "1.1 Start", "1.2 End", "2 Fees"}},
		{"sections inside of one line", "AGREEMENT  1. Term. One year.  2. Fees. None. 3. Law. Ours.", []string{"1 Term", "2 Fees", "3 Law"}},
		{"names", "ARTICLE I\nSCOPE\n\nSection 1.1 Services. All.\n\nSection 1.2 Orders. None.\n\nARTICLE II\nCHARGES\n\nSection 2.1 Price. Low.", []string{"ARTICLE I SCOPE", "Section 1.1 Services", "Section 1.2 Orders", "ARTICLE II CHARGES", "Section 2.1 Price"}},
		{"exhibits begin anew", "1. Term. A.\n\n2. Fees. B.\n\nEXHIBIT A\n\n1. Scope. C.\n\n2. Place. D.", []string{"1 Term", "2 Fees", "EXHIBIT A", "1 Scope", "2 Place"}},
		{"lists inside of sections", "1. Service\n    1. Access. A.\n    2. Support. B.\n2. Fees\n    1. Price. C.", []string{"1 Service", "1 Access", "2 Support", "2 Fees", "1 Price"}},
		{"a title in capitals", "Preamble.\n\nGENERAL TERMS\n\nThe parties agree.", []string{"GENERAL TERMS"}},
		{"markup", "# Standard Terms\n\n1. Scope. All.", []string{"Standard Terms", "1 Scope"}},
		{"one number is missing", "1. Term. Yes.\n2. Fees. Yes.\n4. Law. Yes.", []string{"1 Term", "2 Fees", "4 Law"}},
		{"several are missing, and the numbering goes on", "1. Term. Yes.\n2. Fees. Yes.\n7. Law. Yes.\n8. Notice. Yes.", []string{"1 Term", "2 Fees", "7 Law", "8 Notice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := headingsOf(c.text); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A section that was taken out does not move the sections behind it to another rank.
func TestRanksAfterAGap(t *testing.T) {
	text := "1. Term. Yes.\n1.1 Start. Yes.\n5. Fees. Yes.\n5.1 Price. Yes.\n5.2 Tax. Yes.\n6. Law. Yes."
	var got []int
	for _, h := range outlineOf(text).headings {
		got = append(got, h.rank)
	}
	if want := []int{2, 3, 2, 3, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("got ranks %v, want %v", got, want)
	}
}

func headingsOf(text string) []string {
	var got []string
	for _, h := range outlineOf(text).headings {
		got = append(got, h.String())
	}
	return got
}

// What looks like a number of a section and is none.
func TestNoHeadings(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"a citation at the start of a line", "10.1 Cap. It is capped.\n10.2 Scope. As limited by clause\n11.5. The Supplier pays."},
		{"a citation before small letters", "10.1 Cap. It is capped.\n10.2 Scope. See below.\n11.5 shall not apply."},
		{"a citation with a letter", "10.1 Cap. It is capped.\n10.2 Scope. Defined in\nSection 11.5(a) of this Agreement."},
		{"a citation far from its section", "10.1 Cap. It is capped.\n10.2 Scope. All.\n\n14.5 Applies to it."},
		{"days, amounts and dates", "10.1 Cap. It is capped.\n10.2 Pay. Within\n30 Days or\n1.500 Euro or on\n12.5.2020 The latest."},
		{"a page number", "10.1 Cap. It is capped.\n10.2 Scope. The parties\n\n      9\n\nTHE supplier shall pay."},
		{"an exhibit inside of a sentence", "10.1 Cap. It is capped.\n10.2 Scope. It is described in the attached\nEXHIBIT C."},
		{"capitals that go on over lines", "10.1 Cap. It is capped.\n10.2 Scope. THIS IS ALL.\n\nTHE SOFTWARE IS PROVIDED AS IT IS WITHOUT\nWARRANTY OF ANY KIND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := headingsOf("10. General\n" + c.text)
			if len(got) < 2 || len(got) > 3 {
				t.Errorf("got %q, want no more than 10, 10.1 and 10.2", got)
			}
			for _, h := range got {
				if h[:2] != "10" {
					t.Errorf("got a heading %q", h)
				}
			}
		})
	}
}

func TestStrength(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		want                strength
	}{
		{"a sentence", "It ends. ", "Next one", atSentence},
		{"an abbreviation is no end", "TouchStar Inc. ", "The seller", atSpace},
		{"an initial is no end", "John F. ", "Kennedy", atSpace},
		{"a quoted sentence", "\u201cIt ends.\u201d ", "Next one", atSentence},
		{"a line", "It ends.\n", "next", atLine},
		{"a paragraph", "It ends.\n\n", "Next", atParagraph},
		{"a page break inside of a sentence", "the parties\n\n", "shall pay", atSpace},
		{"a list", "costs; ", "taxes", atSemicolon},
		{"a comma", "costs, ", "taxes", atComma},
		{"a word", "any ", "cost", atSpace},
		{"inside of a word", "co", "st", anywhere},
		{"before white space", "cost", " and", nowhere},
		{"inside of a sign", "e", "\u0301", nowhere},
		{"a sentence in Japanese", "\u7d42\u308f\u308a\u3002", "\u6b21", atSentence},
		{"between a heading and its clause", "1. Term.\n\n", "The term", anywhere},
		{"a section", "It ends.\n\n", "1. Term", atSection},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "The parties agree. " + c.before + c.after + " is that."
			if c.want == anywhere && c.after == "The term" {
				text = c.before + c.after
			}
			p := len(text) - len(c.after+" is that.")
			if c.after == "The term" {
				p = len(c.before)
			}
			if got := outlineOf(text).strengthAt(p); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestContinues(t *testing.T) {
	for _, c := range []struct {
		last, path []int
		want       bool
	}{
		{[]int{1}, []int{2}, true},
		{[]int{1}, []int{3}, true},
		{[]int{1}, []int{4}, false},
		{[]int{2}, []int{2}, false},
		{[]int{2}, []int{1}, false},
		{[]int{1}, []int{1, 1}, true},
		{[]int{1, 4}, []int{2}, true},
		{[]int{1, 4}, []int{2, 1}, true},
		{[]int{1, 4}, []int{2, 4}, false},
		{[]int{1, 4, 2}, []int{1, 5}, true},
		{[]int{1, 4, 2}, []int{1, 4, 3}, true},
		{[]int{4, 15}, []int{4, 16}, true},
		{[]int{10, 2}, []int{11, 5}, false},
	} {
		if got := continues(c.last, c.path); got != c.want {
			t.Errorf("%v after %v: got %v, want %v", c.path, c.last, got, c.want)
		}
	}
}
