package offline

import (
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// Clause is a kind of clause that the classifier was trained to know, as CUAD names it, and the check of the playbook
// that asks about it.
type Clause struct{ Kind, Check string }

// Clauses are all of them.
func Clauses() []Clause {
	all := make([]Clause, len(clauses))
	for i, c := range clauses {
		all[i] = Clause{c.kind, c.check}
	}
	return all
}

// clause says what a finding of its check is like where the classifier alone sees one, and no rule says what is in it.
type clause struct {
	kind, check string
	needs       string            // parts of words; a sentence of the kind, or its heading, has one of them
	at          pipeline.Severity // "" is low
	title, why  string
}

var clauses = []clause{
	{"Cap On Liability", "liability.cap-present", `liab|damages|exceed|limit|loss|remed|recover|claim`, "", "Liability is limited", "The clause limits what can be claimed."},
	{"Uncapped Liability", "liability.carve-outs", `liab|damages|limit|loss|indemn|remed`, "", "Liability without a limit", "For what is named here, the limits of liability do not hold."},
	{"Liquidated Damages", "liability.liquidated-damages", `liquidated|damages|penalt|fee|pay|charge|sum|amount|compensat`, pipeline.Medium, "A sum is due without proof of loss", "A fixed sum or fee is due when the contract ends or is broken."},
	{"Expiration Date", "term-termination.initial-term", `term|expir|continue|effect|until|period|end|force`, "", "Term of the contract", "The clause says how long the contract runs."},
	{"Renewal Term", "term-termination.auto-renewal", `renew|extend|extension|successive|additional|further|roll|consecutive|continu`, "", "Renewal of the contract", "The clause lets the term be renewed or extended."},
	{"Notice Period To Terminate Renewal", "term-termination.renewal-notice", `notice|notif|inform|advis|writ`, "", "Notice against renewal", "Who does not want the renewal must say so in time."},
	{"Termination For Convenience", "term-termination.convenience", `terminat|cancel|withdraw|end|discontinu`, pipeline.Medium, "Termination without cause", "The contract can be ended by notice alone, without a reason."},
	{"Post-Termination Services", "term-termination.after-the-end", `terminat|expir|cancel|after|surviv|thereafter|wind|transition|end of`, "", "Duties after the end", "The clause says what is owed after the contract has ended."},
	{"Anti-Assignment", "assignment-control.consent", `assign|transfer|delegat|convey|dispose`, "", "Assignment is restricted", "The contract cannot be assigned freely."},
	{"Change Of Control", "assignment-control.change-of-control", `control|merg|acqui|owner|sale|sold|sell|stock|share|voting|consolidat|assets|transfer|assign`, pipeline.Medium, "Change of control", "A change of ownership or control has consequences under the contract."},
	{"Third Party Beneficiary", "assignment-control.successors", `third|benefi|enforce|rights`, "", "Third parties may benefit", "The clause gives rights to somebody who is not a party."},
	{"Ip Ownership Assignment", "ip-licence.ownership", `assign|own|title|property|vest|hire|transfer|belong`, pipeline.Medium, "Ownership of intellectual property passes", "The clause assigns intellectual property to one party."},
	{"Joint Ip Ownership", "ip-licence.ownership", `joint|own|both|equal|together`, "", "Jointly owned intellectual property", "Both parties own what is named here, so each depends on the other."},
	{"License Grant", "ip-licence.licence-scope", `licen|right|grant|permi|authori|use`, "", "Grant of a licence", "The clause grants a licence and sets its limits."},
	{"Non-Transferable License", "ip-licence.licence-scope", `transfer|assign|licen|right|use`, "", "The licence cannot be transferred", "The licence may not be transferred or sublicensed freely."},
	{"Affiliate License-Licensor", "ip-licence.licence-scope", `affiliat|subsidiar|licen|parent|compan`, "", "Licence of affiliates' rights", "The licence covers rights that affiliates of the licensor hold."},
	{"Affiliate License-Licensee", "ip-licence.licence-scope", `affiliat|subsidiar|licen|parent|compan`, "", "Affiliates may use the licence", "The licence extends to affiliates of the licensee."},
	{"Unlimited/All-You-Can-Eat-License", "ip-licence.licence-scope", `unlimit|any|all|enterprise|limit`, "", "Unlimited use", "The licence does not limit the amount of use."},
	{"Volume Restriction", "commercial-payment.minimum-commitment", `exceed|more than|limit|maxim|minim|number|up to|least|addition|excess|less|per `, "", "Volume is limited", "More than a stated volume needs consent, costs more or need not be delivered."},
	{"Irrevocable Or Perpetual License", "ip-licence.licence-term", `perpetual|irrevocabl|forever|surviv|fully paid|paid-up|unlimited|terminat|expir|term`, pipeline.Medium, "Lasting or irrevocable licence", "The licence cannot be ended, or has no end."},
	{"Source Code Escrow", "ip-licence.source-code", `escrow|source|deposit|code|release`, "", "Source code in escrow", "The clause deposits source code or says when it is released."},
	{"Exclusivity", "restrictive-covenants.exclusivity", `exclusiv|sole|only|any other|not|no other|all of`, pipeline.Medium, "Exclusive dealing", "The clause binds a party to the other, or gives it an exclusive right."},
	{"Non-Compete", "restrictive-covenants.non-compete", `compet|engage|similar|business|restrict|not|sell|market`, pipeline.Medium, "Competition is restricted", "The clause limits what a party may do in competition."},
	{"No-Solicit Of Employees", "restrictive-covenants.employee-non-solicit", `employ|hire|solicit|personnel|recruit|staff|consultant`, "", "Hiring is restricted", "The other party's people may not be approached or hired."},
	{"No-Solicit Of Customers", "restrictive-covenants.customer-non-solicit", `customer|client|solicit|account|business|contract`, pipeline.Medium, "Customers may not be approached", "The clause limits dealings with the other party's customers."},
	{"Non-Disparagement", "restrictive-covenants.disparagement", `disparag|reput|derogat|image|goodwill|adverse|detriment|unfavo|negativ|harm|reflect|public|statement|discredit|ridicule`, "", "No disparagement", "Statements about the other party are restricted."},
	{"Rofr/Rofo/Rofn", "restrictive-covenants.first-refusal", `first|refusal|offer|negotiat|option|right|match|notice|prior|propos`, "", "Right to go first", "Before others, the other party must be asked or offered the deal."},
	{"Covenant Not To Sue", "restrictive-covenants.standstill", `contest|challeng|sue|claim|releas|waive|disput|attack|oppose|question|action|validity|assert|impair|suit|interest`, "", "Claims or challenges are given up", "A party promises not to sue or not to challenge the other's rights."},
	{"Minimum Commitment", "commercial-payment.minimum-commitment", `minim|least|quota|commit|guarant|less than|shortfall|require|purchase|target|annual|order|pay`, pipeline.Medium, "Minimum commitment", "A minimum must be bought, paid or delivered."},
	{"Most Favored Nation", "commercial-payment.most-favoured", `favo|price|lower|lowest|terms|other`, pipeline.Medium, "Most-favoured terms", "Terms follow those that are given to others."},
	{"Price Restrictions", "commercial-payment.most-favoured", `price|fee|rate|increas|charge|cost`, "", "Prices are restricted", "The clause limits how prices may be set or changed."},
	{"Revenue/Profit Sharing", "commercial-payment.expenses", `royalt|share|sharing|percent|%|commission|revenue|profit|proceeds|net|sales|split|pay`, "", "A share of revenue is due", "A royalty, commission or other share of revenue or profit is paid."},
	{"Warranty Duration", "warranty-sla.warranty-period", `warrant|guarant|defect & day|month|year|period|term|life|expir|after|until`, "", "Warranty period", "The clause says how long a warranty lasts."},
	{"Insurance", "insurance-compliance.insurance-amount", `insur|cover|polic`, "", "Insurance is required", "The clause asks for insurance."},
	{"Audit Rights", "insurance-compliance.audit", `audit|inspect|examin|book|record|access|review|account|verif|visit`, "", "Books or premises may be inspected", "The clause lets a party inspect the other's books, records or premises."},
	{"Governing Law", "disputes-drafting.governing-law", `law|govern|jurisdict`, "", "Choice of law", "The clause says which law governs."},
}

// needed are the parts of words that a sentence of each kind has, one of each list.
var needed = func() [][][]string {
	all := make([][][]string, len(clauses))
	for i, c := range clauses {
		for _, list := range strings.Split(c.needs, " & ") {
			all[i] = append(all[i], strings.Split(list, "|"))
		}
	}
	return all
}()

// lacks says that neither the sentence nor its heading has any word that goes with the kind, whatever else it is like.
func (t *text) lacks(i, k int) bool {
	s, title := t.sentences[i], t.titles[i]
	for _, list := range needed[k] {
		if !slices.ContainsFunc(list, func(part string) bool {
			return strings.Contains(t.lower[s.start:s.end], part) || strings.Contains(t.lower[title.start:title.end], part)
		}) {
			return true
		}
	}
	return false
}

// kindsOf are the kinds that a check asks about, as indexes of clauses.
var kindsOf = func() map[string][]int {
	all := map[string][]int{}
	for i, c := range clauses {
		all[c.check] = append(all[c.check], i)
	}
	return all
}()

// mostSeen bounds how many clauses of one check the classifier alone reports of one part.
const mostSeen = 4

// seen are the sentences that the classifier alone takes for clauses of the check: none of its rules' hits is there.
func (t *text) seen(check string, hits []hit) []hit {
	best := map[int]hit{}
	for _, k := range kindsOf[check] {
		kind := t.classifier().kinds[k]
		for i, s := range t.sentences {
			p := t.chances()[i][k]
			if p < kind.Find || slices.ContainsFunc(hits, func(h hit) bool { return h.sentence == s }) {
				continue
			}
			sure := 0.5 + 0.4*float64(p-kind.Find)/float64(1-kind.Find)
			if old, ok := best[i]; !ok || sure > old.sure {
				best[i] = hit{rule: clauseRules[k], sentence: s, found: t.telling(i, k), sure: rounded(sure)}
			}
		}
	}
	all := make([]hit, 0, len(best))
	for i := range t.sentences {
		if h, ok := best[i]; ok {
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b hit) int { return compare(b.sure, a.sure) })
	return all[:min(len(all), mostSeen)]
}

func rounded(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// clauseRules word what the classifier alone found.
var clauseRules = func() []*rule {
	all := make([]*rule, len(clauses))
	for i, c := range clauses {
		all[i] = &rule{check: c.check, stands: unjudged, at: c.at, title: c.title, why: c.why}
	}
	return all
}()

// certain is a hit of a rule that is too narrow to be wrong about what the sentence is about.
func (h hit) certain() bool { return h.rule.sure >= 0.85 }

// allowed leaves out the hits that the classifier denies: it was trained on what the check asks about, and the
// sentence resembles none of it.
func (t *text) allowed(check string, hits []hit) []hit {
	kinds := kindsOf[check]
	if len(kinds) == 0 {
		return hits
	}
	return slices.DeleteFunc(slices.Clone(hits), func(h hit) bool {
		if h.certain() {
			return false
		}
		i, ok := slices.BinarySearchFunc(t.sentences, h.sentence.start, func(s span, at int) int { return s.start - at })
		if !ok {
			return false
		}
		for _, k := range kinds {
			if t.chances()[i][k] >= t.classifier().kinds[k].Keep {
				return false
			}
		}
		return true
	})
}
