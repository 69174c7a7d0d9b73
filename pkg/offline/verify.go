package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
)

const drafting = "governing_law_boilerplate"

// verify answers the calls of the last stage.
func (q question) verify(what string) any {
	switch what {
	case "definitions":
		return q.fit(merge(slices.Concat(q.text.definedTwice(), q.text.nearMisses(), q.text.brokenReferences(), q.text.blanks())))
	case "obligations":
		return q.obligations()
	case "grounding":
		return q.grounding()
	case "contradictions":
		return q.fit(q.unreported(slices.Concat(q.text.differingPeriods(), q.text.exclusiveOrNot())))
	}
	return nil
}

// point is a finding of this stage about a range of plain.
func (t *text) point(at span, severity pipeline.Severity, title, why, redline string, sure float64) finding {
	sentence := at
	for _, s := range t.sentences {
		if s.start <= at.start && at.start < s.end {
			sentence = span{s.start, max(s.end, at.end)}
		}
	}
	return finding{
		Category: drafting, Severity: severity, Title: title, Quote: t.quote(sentence, at),
		Rationale: why, Redline: redline, Confidence: sure,
	}
}

// definedTwice finds terms that the part defines more than once.
func (t *text) definedTwice() []finding {
	var all []finding
	seen := map[string]bool{}
	for _, m := range defined.FindAllStringSubmatchIndex(t.plain, -1) {
		term := t.group(m, 1) + t.group(m, 2)
		if seen[term] {
			all = append(all, t.point(span{m[0], m[1]}, pipeline.Low, fmt.Sprintf("%q is defined twice", term),
				"The same term is defined more than once in this part; which definition holds is open.", "Keep one definition and refer to it.", 0.7))
		}
		seen[term] = true
	}
	return all
}

func (t *text) group(m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return t.plain[m[2*n]:m[2*n+1]]
}

var capitalised = regexp.MustCompile(`\bthe ([A-Z][a-z]+) ([A-Z][a-z]+)\b`)

// nearMisses finds terms that look defined and almost match a definition of the part: "Marketing Literature" beside
// "Marketing Materials".
func (t *text) nearMisses() []finding {
	terms := map[string]bool{}
	byFirst := map[string]string{}
	for _, m := range defined.FindAllStringSubmatch(t.plain, -1) {
		term := m[1] + m[2]
		terms[term] = true
		if pair := strings.Fields(term); len(pair) == 2 {
			byFirst[pair[0]] = term
		}
	}
	var all []finding
	seen := map[string]bool{}
	for _, m := range capitalised.FindAllStringSubmatchIndex(t.plain, -1) {
		used := t.group(m, 1) + " " + t.group(m, 2)
		near, known := byFirst[t.group(m, 1)]
		if !known || terms[used] || terms[used+"s"] || terms[strings.TrimSuffix(used, "s")] || seen[used] {
			continue
		}
		seen[used] = true
		all = append(all, t.point(span{m[0], m[1]}, pipeline.Low, fmt.Sprintf("%q is not the defined %q", used, near),
			"A term is used like a defined one, but this part defines only one that almost matches it.",
			fmt.Sprintf("Use %q throughout, or define %q.", near, used), 0.6))
	}
	return all
}

var (
	clauseHeading = regexp.MustCompile(`(?:^|[\n ])(\d{1,2})\.(\d{1,2})\.? +[A-Z][A-Z' ,;&-]{3,}`)
	articleHead   = regexp.MustCompile(`(?:^|[\n ])(\d{1,2})\. +[A-Z][A-Z' ,;&-]{3,}\.`)
	reference     = regexp.MustCompile(`\bSections? (\d{1,2})\.(\d{1,2})\b`)
)

// brokenReferences finds references to a section that cannot be there: its article stands in this part from its first
// section to the next article's heading, without it.
func (t *text) brokenReferences() []finding {
	last := map[int]int{}
	first := map[int]bool{}
	articles := map[int]bool{}
	for _, m := range clauseHeading.FindAllStringSubmatch(t.plain, -1) {
		article, section := atoi(m[1]), atoi(m[2])
		last[article] = max(last[article], section)
		first[article] = first[article] || section == 1
	}
	for _, m := range articleHead.FindAllStringSubmatch(t.plain, -1) {
		articles[atoi(m[1])] = true
	}
	var all []finding
	for _, m := range reference.FindAllStringSubmatchIndex(t.plain, -1) {
		article, section := atoi(t.group(m, 1)), atoi(t.group(m, 2))
		whole := articles[article+1] && last[article] > 0 && (first[article] || section > last[article])
		if whole && section > last[article] {
			all = append(all, t.point(span{m[0], m[1]}, pipeline.Medium, fmt.Sprintf("There is no Section %d.%d", article, section),
				fmt.Sprintf("Article %d ends with Section %d.%d in this part; the reference leads nowhere.", article, article, last[article]),
				"Correct the reference.", 0.8))
		}
	}
	return all
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

var blank = regexp.MustCompile(`\b\d{2,3}_+|\[ *[•●_]+ *\]`)

func (t *text) blanks() []finding {
	var all []finding
	for _, m := range blank.FindAllStringIndex(t.plain, 3) {
		all = append(all, t.point(span{m[0], m[1]}, pipeline.Medium, "A date or name was left blank",
			"Where a date, name or number should stand, there is a blank; what depends on it cannot be computed.", "Fill the blank before signing.", 0.85))
	}
	return all
}

type obligation struct {
	Who   string `json:"who"`
	What  string `json:"what"`
	When  string `json:"when"`
	Quote string `json:"quote"`
}

type obligations struct {
	Obligations []obligation `json:"obligations"`
	Findings    []finding    `json:"findings"`
}

var (
	duty     = re(`\bWHO (?:shall|will|must) (?P<x>[^,;.]{4,90})`)
	deadline = re(`\b(?:within|no later than|at least|not less than|for a period of|upon not less than) [a-z-]+ \(\d{1,3}\) (?:calendar |business )?(?:days|months|years)\b[^,;.]{0,40}`)
)

// obligations lists duties with a time, as many as the answer's tokens allow, and times that contradict themselves.
func (q question) obligations() any {
	answer := obligations{Obligations: []obligation{}, Findings: orEmpty(q.unreported(q.text.wordsAndFigures()))}
	for _, s := range q.text.sentences {
		sentence := q.text.plain[s.start:s.end]
		when := deadline.FindStringIndex(sentence)
		who := duty.FindStringSubmatch(sentence)
		if when == nil || who == nil {
			continue
		}
		answer.Obligations = append(answer.Obligations, obligation{
			Who: q.text.party(who[duty.SubexpIndex("who")]), What: who[duty.SubexpIndex("x")],
			When:  sentence[when[0]:when[1]],
			Quote: q.text.quote(s, span{s.start + when[0], s.start + when[1]}),
		})
	}
	for len(answer.Obligations) > 0 && q.tooLong(answer) {
		answer.Obligations = answer.Obligations[:len(answer.Obligations)-1]
	}
	return answer
}

type ungrounded struct {
	Title  string `json:"title"`
	Quote  string `json:"quote"`
	Reason string `json:"reason"`
}

type grounding struct {
	Checked     int          `json:"checked"`
	Share       float64      `json:"supported_share"`
	Unsupported []ungrounded `json:"unsupported"`
}

func (q question) grounding() any {
	all := q.shown()
	g := grounding{Checked: len(all), Share: 1, Unsupported: []ungrounded{}}
	for _, f := range all {
		if f.Quote == "" || !q.text.contains(f.Quote) {
			g.Unsupported = append(g.Unsupported, ungrounded{f.Title, f.Quote, "The quote does not stand in the text."})
		}
	}
	if len(all) > 0 {
		g.Share = float64(len(all)-len(g.Unsupported)) / float64(len(all))
	}
	for len(g.Unsupported) > 0 && q.tooLong(g) {
		g.Unsupported = g.Unsupported[:len(g.Unsupported)-1]
	}
	return g
}

// unreported leaves out what an earlier finding says of the same words.
func (q question) unreported(all []finding) []finding {
	said := map[string]bool{}
	for _, f := range q.shown() {
		said[f.Title+words(f.Quote)] = true
	}
	return slices.DeleteFunc(all, func(f finding) bool { return said[f.Title+words(f.Quote)] })
}
