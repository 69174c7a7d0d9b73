package offline

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

type score struct {
	Score  int    `json:"score"`
	Risk   int    `json:"risk"`
	Reason string `json:"reason"`
}

// signs of a category: one strong sign is a clause about it; weak ones add up.
type signs struct{ strong, weak pattern }

const (
	strongWorth = 45
	weakWorth   = 7
	mostWeak    = 5
)

// score says how much the part has of a category, from what the classifier sees and from the density of its words, and
// how bad what it says is, from the rules.
func (q question) score(category string) any {
	s, ok := categorySigns[category]
	if !ok {
		return nil
	}
	strong := distinct(s.strong.FindAllString(q.text.plain, -1))
	weak := distinct(s.weak.FindAllString(q.text.plain, -1))
	value := min(100, strongWorth*min(len(strong), 1)+10*max(0, len(strong)-1)+weakWorth*min(len(weak), mostWeak))
	clause, likely := q.text.likeliest(category)
	switch {
	case clause == "":
	case likely >= 1:
		value = max(value, clauseWorth+int((100-clauseWorth)*min(1, (likely-1)/likely)))
	case covered[category] && likely < faint:
		value = min(value, mentionWorth)
	}
	return score{Score: value, Risk: riskOf(q.text, category), Reason: reason(clause, likely, strong, weak)}
}

const (
	clauseWorth  = 45  // of a sentence that the classifier takes for a clause of the category
	mentionWorth = 30  // at most, of words of the category that no clause goes with
	faint        = 0.2 // of what makes a finding: less likely than that is not a clause of the category
)

// covered are the categories whose clauses are nearly all of kinds that the classifier knows. Their words alone, in a
// list of what survives the contract for example, do not make a clause.
var covered = map[string]bool{
	"limitation_of_liability": true, "term_renewal": true, "assignment_change_of_control": true, "restrictive_covenants": true,
}

// likeliest is the kind of the category's clauses that a sentence of the text is most likely of, and how likely, as a
// multiple of what makes a finding; "" where the classifier knows no kind of the category.
func (t *text) likeliest(category string) (kind string, likely float64) {
	for k, c := range clauses {
		if !slices.Contains(checksOf[category], c.check) {
			continue
		}
		if kind == "" {
			kind = c.kind
		}
		for _, chances := range t.chances() {
			if of := float64(chances[k] / t.classifier().kinds[k].Find); of > likely {
				kind, likely = c.kind, of
			}
		}
	}
	return kind, likely
}

func reason(clause string, likely float64, strong, weak []string) string {
	found := append(append([]string{}, strong...), weak...)
	text := "None of the words of this category occur."
	if len(found) > 0 {
		text = fmt.Sprintf("%d clear and %d weak signs, among them %q.", len(strong), len(weak), strings.Join(found[:min(3, len(found))], ", "))
	}
	if clause != "" && likely >= 1 {
		text += fmt.Sprintf(" A sentence reads like a clause of the kind %q.", clause)
	}
	return text
}

func distinct(found []string) []string {
	var list []string
	seen := map[string]bool{}
	for _, f := range found {
		f = words(strings.ToLower(f))
		if !seen[f] {
			seen[f] = true
			list = append(list, f)
		}
	}
	return list
}

// riskOf is the gravest thing that the rules of the category's analysts reject in the text: 0 to 4.
func riskOf(t *text, category string) int {
	risk := 0
	for _, check := range checksOf[category] {
		for _, r := range rulesOf(check) {
			if r.stands == rejects && len(r.apply(t, 1)) > 0 {
				risk = max(risk, weight(r.at))
			}
		}
	}
	return risk
}

// weight of a severity; a rule that leaves it to the playbook weighs as medium to high.
func weight(s pipeline.Severity) int {
	switch s {
	case pipeline.Critical:
		return 4
	case pipeline.High, "":
		return 3
	case pipeline.Medium:
		return 2
	case pipeline.Low:
		return 1
	}
	return 0
}

// analystsOf says which analysts' checks tell the risk of a category.
var analystsOf = map[string][]string{
	"limitation_of_liability":      {"liability"},
	"indemnification":              {"indemnity"},
	"term_renewal":                 {"term-termination.initial-term", "term-termination.auto-renewal", "term-termination.renewal-notice"},
	"termination":                  {"term-termination.convenience", "term-termination.cause-and-cure", "term-termination.trigger-events", "term-termination.suspension", "term-termination.after-the-end"},
	"assignment_change_of_control": {"assignment-control"},
	"ip_licence":                   {"ip-licence"},
	"restrictive_covenants":        {"restrictive-covenants"},
	"confidentiality_data":         {"privacy-confidentiality"},
	"fees_commitments":             {"commercial-payment"},
	"warranties_sla":               {"warranty-sla"},
	"insurance_audit_compliance":   {"insurance-compliance"},
	"governing_law_boilerplate":    {"disputes-drafting"},
}

var checksOf = findChecks()

func findChecks() map[string][]string {
	all := map[string][]string{}
	for category, prefixes := range analystsOf {
		for check := range ruleIndex {
			for _, p := range prefixes {
				if check == p || strings.HasPrefix(check, p+".") {
					all[category] = append(all[category], check)
				}
			}
		}
	}
	return all // in any order: only the greatest risk is asked for
}

var categorySigns = map[string]signs{
	"limitation_of_liability": {
		re(`\blimitations? (?:of|on) (?:liability|damages)\b|\bin no event (?:shall|will)\b.{0,60}\bliable\b|\b(?:aggregate|total|maximum) liability\b|\bliability\b.{0,40}\b(?:shall not|not) exceed\b|\b(?:neither|no) party (?:shall|will) be liable\b`),
		re(`\bliab(?:le|ility)\b|\b(?:consequential|punitive|indirect|incidental) (?:loss|damages?)\b|\bdamages\b|\bloss of profits?\b`),
	},
	"indemnification": {
		re(`\bindemnif(?:y|ies|ication)\b|\bhold harmless\b|\bindemnity\b`),
		re(`\bdefend\b|\bthird[- ]party claims?\b|\bharmless\b|\bsettlement\b`),
	},
	"term_renewal": {
		re(`\bterm of (?:this )?agreement\b|\binitial term\b|\b(?:renewal|extension) (?:term|period)s?\b|\bautomatically renew\w*|\bfor a (?:term|period) of\b.{0,40}\b(?:months|years) from\b`),
		re(`\brenew(?:al|ed)?\b|\beffective date\b|\bexpir(?:e|es|ation)\b|\bduring the term\b`),
	},
	"termination": {
		re(`\bmay terminate\b|\bright to terminate\b|\btermination (?:of this agreement|at|for|by|upon)\b|\bupon (?:expiration or )?termination\b`),
		re(`\bterminat(?:e|es|ed|ion)\b|\bcure\b|\bunremedied\b|\bsurviv\w+|\bbreach\b`),
	},
	"assignment_change_of_control": {
		re(`\bassign(?:ed)? this agreement\b|\bagreement may not be assigned\b|\bchange (?:of|in) control\b|\bassignment\.|\b(?:neither party|may not) (?:may |shall )?assign\b|\bsuccessors and assigns\b`),
		re(`\bassign(?:s|ee|or|ment)?\b|\bmerge[rd]\b|\bsuccessors?\b|\baffiliate\b|\bvoting\b`),
	},
	"ip_licence": {
		re(`\bintellectual property\b|\bgrants?\b.{0,80}\blicen[sc]e\b|\bright and licen[sc]e\b|\bpatents?\b|\bcopyrights?\b|\btrademarks?\b|\breverse engineer`),
		re(`\blicen[sc]e[sd]?\b|\bownership\b|\bsource code\b|\binfring\w+|\broyalt(?:y|ies)\b`),
	},
	"restrictive_covenants": {
		re(`\bnon-?compet\w*|\bnot to compete\b|\bcovenant not to\b|\bexclusiv(?:e|ely|ity)\b.{0,40}\b(?:right|basis|distributor|reseller|licen[sc]e)\b|\bright of first\b|\bdirectly compete\b|\bnot to solicit\b|\bnon-?solicit\w*`),
		re(`\bcompet\w+|\bsolicit\b|\bexclusive\b|\bterritory\b|\brestrict\w*`),
	},
	"confidentiality_data": {
		re(`\bconfidential(?:ity)? (?:information|agreement)s?\b|\bconfidentiality\b|\bnon-?disclosure\b|\bpersonal (?:data|information)\b|\bdata protection\b`),
		re(`\bdisclos\w+|\bconfiden\w+|\bsecurity\b|\bproprietary\b|\btrade secrets?\b`),
	},
	"fees_commitments": {
		re(`\bprice and payment\b|\b(?:payment of|pay) (?:the |all |any )?(?:fees?|price|charges)\b|\binvoices?\b|\bfees\b|\bquotas?\b|\broyalt(?:y|ies)\b|\bpurchase price\b|\bminimum (?:purchase|commitment|order)`),
		re(`\bpay(?:able|ment)?\b|\btax(?:es)?\b|\binterest\b|\bexpenses\b|\bprices?\b|\breimburse\b`),
	},
	"warranties_sla": {
		re(`\b(?:limited )?warrant(?:y|ies|s)\b|\bservice levels?\b|\bas is\b|\buptime\b`),
		re(`\bwarranted\b|\brepresentations?\b|\bremed(?:y|ies)\b|\befforts\b|\bdefects?\b|\bspecifications\b`),
	},
	"insurance_audit_compliance": {
		re(`\binsurance\b|\baudit\b|\bcompl(?:y|iance) with (?:all )?(?:applicable )?(?:laws|legal requirements)\b|\bcorrupt practices\b|\bexport (?:control|administration)\b|\bgovernment controls\b|\bbooks and records\b`),
		re(`\bcompl(?:y|iance)\b|\brecords?\b|\breports?\b|\binspect\w*|\bregulations?\b`),
	},
	"governing_law_boilerplate": {
		re(`\bgoverning law\b|\bgoverned by\b|\barbitrat(?:ion|ors?)\b|\bjurisdiction\b.{0,40}\bcourts?\b|\bentire agreement\b|\bforce majeure\b|\bseverability\b|\bthird[- ]party beneficiar`),
		re(`\bcourts?\b|\bnotices?\b|\bwaivers?\b|\bamend(?:ed|ment)?\b|\bdisputes?\b|\bheadings?\b`),
	},
}
