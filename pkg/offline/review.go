package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// hitsPerRule bounds how often one rule reports in one part of a document.
const hitsPerRule = 2

type findings struct {
	Findings []finding `json:"findings"`
}

// check answers the checks that the prompt shows, for one analyst: what the rules say and the classifier does not deny,
// and what the classifier alone sees.
func (q question) check(analyst string) []finding {
	var all []finding
	for _, p := range q.playbook {
		check := analyst + "." + p.id
		var hits []hit
		for _, r := range rulesOf(check) {
			hits = append(hits, r.apply(q.text, hitsPerRule)...)
		}
		hits = append(hits, q.text.seen(check, hits)...)
		for _, h := range hits {
			all = append(all, h.finding(q.text, p))
		}
	}
	return all
}

// consolidate joins what the analyst's checks found, and drops what does not stand in the text.
func (q question) consolidate() []finding {
	return merge(slices.DeleteFunc(q.shown(), func(f finding) bool { return f.Quote == "" || !q.text.contains(f.Quote) }))
}

// merge makes one finding of those that have category and quote in common: the gravest, with the others' points.
func merge(all []finding) []finding {
	type point struct{ category, quote string }
	var merged []finding
	index := map[point]int{}
	for _, f := range all {
		key := point{f.Category, words(f.Quote)}
		i, seen := index[key]
		if !seen {
			index[key] = len(merged)
			merged = append(merged, f)
			continue
		}
		merged[i] = join(merged[i], f)
	}
	return gravestFirst(merged)
}

func join(a, b finding) finding {
	if b.Severity.Rank() < a.Severity.Rank() {
		a, b = b, a
	}
	if a.Title != b.Title && !strings.Contains(a.Rationale, b.Title) && len(a.Rationale) < 400 {
		a.Rationale += " Also: " + b.Title + "."
	}
	if a.Redline == "" {
		a.Redline = b.Redline
	}
	a.Confidence = max(a.Confidence, b.Confidence)
	return a
}

func gravestFirst(all []finding) []finding {
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(b.Confidence, a.Confidence))
	})
	return all
}

// fit keeps the gravest findings, as many as the answer's tokens allow.
func (q question) fit(all []finding) findings {
	all = gravestFirst(all)
	for len(all) > 0 && q.tooLong(findings{all}) {
		all = all[:len(all)-1]
	}
	return findings{orEmpty(all)}
}

func (q question) tooLong(value any) bool {
	body, err := json.Marshal(value)
	return err == nil && q.maxTokens > 0 && outputTokens(string(body)) > q.maxTokens
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// outputTokens estimates the tokens of an answer, which is prose in JSON: four bytes each.
func outputTokens(body string) int { return (len(body) + 3) / 4 }

type prime struct {
	Summary string   `json:"summary"`
	Parties []party  `json:"parties"`
	Terms   []string `json:"defined_terms"`
}

type party struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

var (
	between = regexp.MustCompile(`(?:between|among) (?P<a>[A-Z][^,("]{2,60}),? [^("]{0,240}\("(?:the )?([^"]{2,30})"\)[^("]{0,20} and (?P<b>[A-Z][^,("]{2,60}),? [^("]{0,240}\((?:the )?"(?:the )?([^"]{2,30})"\)`)
	defined = regexp.MustCompile(`"([A-Z][A-Za-z0-9 $'&-]{1,50})" (?:has the meaning|means|shall mean|as used)|\(the "([A-Z][A-Za-z0-9 '&-]{1,50})"\)`)
)

const (
	mostTerms   = 40
	mostSummary = 300
)

func (q question) prime() any {
	p := prime{Summary: q.text.summary(), Parties: []party{}, Terms: []string{}}
	if m := between.FindStringSubmatch(q.text.plain); m != nil {
		p.Parties = append(p.Parties, party{m[1], m[2]}, party{m[3], m[4]})
	}
	for _, m := range defined.FindAllStringSubmatch(q.text.plain, mostTerms) {
		p.Terms = append(p.Terms, m[1]+m[2])
	}
	return p
}

var heading = regexp.MustCompile(`(?:^|[ \n])\d{1,2}(?:\.\d{1,2})?\.? +([A-Z][A-Z ,;'&-]{3,60})\.`)

// summary names the headings of the part, or begins like it.
func (t *text) summary() string {
	var titles []string
	for _, m := range heading.FindAllStringSubmatch(t.plain, 12) {
		titles = append(titles, capitalise(strings.ToLower(strings.TrimSpace(m[1]))))
	}
	if len(titles) > 0 {
		return pipeline.Cut("This part deals with: "+strings.Join(titles, "; ")+".", mostSummary)
	}
	if len(t.sentences) == 0 {
		return "This part holds no sentences."
	}
	s := t.sentences[0]
	return pipeline.Cut(fmt.Sprintf("This part begins: %s", words(t.plain[s.start:s.end])), mostSummary)
}
