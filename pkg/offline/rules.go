package offline

import (
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
)

// side says whose a right or a duty must be for a rule to apply: ours is the party that buys, licenses in or resells.
type side int

const (
	anybody side = iota
	ours
	theirs
)

// stands says how what was found relates to the playbook.
type stands int

const (
	rejects   stands = iota // the position that the playbook rejects: its severity
	accepts                 // acceptable: low
	preferred               // as preferred, worth knowing: info
	unjudged                // what the check asks about, but nobody has judged it: low
)

// rule finds one point in one sentence. Texts may hold {who} (the party in the group `who`), {n} (the group `n`) and
// {x} (the group `x`).
type rule struct {
	check   string // analyst.check of the playbook
	when    pattern
	unless  pattern
	of      side
	stands  stands
	above   float64 // n must be greater, if set
	below   float64 // n must be less, if set
	at      pipeline.Severity
	title   string
	why     string
	redline string
	sure    float64
}

// re compiles a rule's pattern. `WHO` stands for a party: one or two capitalised words. Everything else is compared
// without regard to case.
func re(expression string) pattern {
	expression = strings.ReplaceAll(expression, "WHO", `(?P<who>(?-i:[A-Z][A-Za-z0-9&-]+(?: [A-Z][A-Za-z0-9&-]+)?))`)
	return newPattern(`(?i)` + expression)
}

var mutual = re(`\b(?:either|neither|each|both) (?:of the )?part(?:y|ies)\b|\bthe parties (?:shall|will|agree)\b`)

// hit is a rule's match in a text.
type hit struct {
	rule     *rule
	sentence span
	found    span // the match itself
	who, n   string
	x        string
	sure     float64
}

// apply looks for the rule in every sentence of the text, leaves out what the classifier denies, and keeps at most
// `most` hits.
func (r *rule) apply(t *text, most int) []hit {
	hits := t.allowed(r.check, t.matches(r))
	return hits[:min(len(hits), most)]
}

// matches are all sentences that the rule matches, found once: a score and a check ask for the same.
func (t *text) matches(r *rule) []hit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if hits, known := t.hits[r]; known {
		return hits
	}
	var hits []hit
	for _, s := range t.sentences {
		if h, ok := r.match(t, s); ok {
			hits = append(hits, h)
		}
	}
	if t.hits == nil {
		t.hits = map[*rule][]hit{}
	}
	t.hits[r] = hits
	return hits
}

func (r *rule) match(t *text, s span) (hit, bool) {
	sentence := t.plain[s.start:s.end]
	if !r.when.possible(t.lower[s.start:s.end]) {
		return hit{}, false
	}
	m := r.when.FindStringSubmatchIndex(sentence)
	if m == nil || r.unless.Regexp != nil && r.unless.MatchString(sentence) {
		return hit{}, false
	}
	group := func(name string) string {
		i := r.when.SubexpIndex(name)
		if i < 0 || m[2*i] < 0 {
			return ""
		}
		return sentence[m[2*i]:m[2*i+1]]
	}
	n := group("n")
	if n == "" {
		n = group("n2") // of the pattern's other half
	}
	h := hit{rule: r, sentence: s, found: span{s.start + m[0], s.start + m[1]}, n: n, x: group("x"), sure: r.sure}
	if h.sure == 0 {
		h.sure = 0.75
	}
	if !r.inRange(h.n) {
		return hit{}, false
	}
	if r.when.SubexpIndex("who") < 0 {
		return h, true
	}
	h.who = t.party(group("who"))
	whose := t.sideOf(h.who)
	if h.who == "" || r.of != anybody && whose != anybody && whose != r.of {
		return hit{}, false
	}
	if r.of != anybody && whose == anybody {
		h.sure -= 0.2
	}
	return h, true
}

func (r *rule) inRange(n string) bool {
	if r.above == 0 && r.below == 0 {
		return true
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(n, ",", ""), 64)
	if err != nil {
		return false
	}
	return (r.above == 0 || value > r.above) && (r.below == 0 || value < r.below)
}

// severity is the playbook's where it rejects; never graver than that.
func (r *rule) severity(p position) pipeline.Severity {
	s := r.at
	switch {
	case s != "":
	case r.stands == accepts, r.stands == unjudged:
		s = pipeline.Low
	case r.stands == preferred:
		s = pipeline.Info
	default:
		s = p.severity
	}
	if p.severity.Valid() && s.Rank() < p.severity.Rank() {
		s = p.severity
	}
	return s
}

func (h hit) fill(text string) string {
	return strings.NewReplacer("{who}", h.who, "{n}", h.n, "{x}", spoken(h.x)).Replace(text)
}

// shortPosition is a preferred position, such as "None.", that says nothing as a proposal.
const shortPosition = 30

// finding words the hit for a lawyer, citing the playbook.
func (h hit) finding(t *text, p position) finding {
	why := h.fill(h.rule.why)
	switch h.rule.stands {
	case accepts:
		why += " Acceptable under the playbook: " + p.acceptable
	case unjudged:
		why += " Compare it with what the playbook prefers: " + p.preferred
	case preferred:
		why += " In line with the playbook: " + p.preferred
	default:
		why += " The playbook rejects: " + p.reject
	}
	redline := h.fill(h.rule.redline)
	if redline == "" && h.rule.stands == rejects && len(p.preferred) > shortPosition {
		redline = "Proposed position: " + p.preferred
	}
	return finding{
		Category:   p.category,
		Severity:   h.rule.severity(p),
		Title:      capitalise(h.fill(h.rule.title)),
		Quote:      t.quote(h.sentence, h.found),
		Rationale:  why,
		Redline:    redline,
		Confidence: h.sure,
	}
}

// spoken is a name as one writes it in a sentence, not in capitals.
func spoken(name string) string {
	if name != strings.ToUpper(name) {
		return name
	}
	all := strings.Fields(strings.ToLower(name))
	for i, w := range all {
		all[i] = capitalise(w)
	}
	return strings.Join(all, " ")
}

func capitalise(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// rulesOf are the rules of one check, by its analyst and id.
func rulesOf(check string) []*rule { return ruleIndex[check] }

var ruleIndex = indexRules(liabilityRules, indemnityRules, termRules, assignmentRules, ipRules, covenantRules,
	confidentialityRules, paymentRules, warrantyRules, complianceRules, disputeRules)

func indexRules(tables ...[]rule) map[string][]*rule {
	index := map[string][]*rule{}
	for _, table := range tables {
		for i := range table {
			index[table[i].check] = append(index[table[i].check], &table[i])
		}
	}
	return index
}
