// Package baseline is what one writes in an afternoon to find clauses: one regular expression for each kind, applied to
// every sentence. The evaluation sets it beside the model, and the training chooses limits that lead it by a margin.
//
// It may decide: where it sees a clause of a kind. It stays as it is: it is the measure.
package baseline

import (
	"regexp"
	"strings"

	"holdfast/scripts/cuad"
)

// The expressions were written from the definitions of the kinds; three that found too little in the training part were
// widened once, before anything was measured on the hold-out.
var patterns = map[string]*regexp.Regexp{
	"Expiration Date":                    plain(`\b(?:term|agreement)\b.{0,80}\b(?:shall|will) (?:commence|continue|remain|expire|begin|end|terminate)|\binitial term\b|\bshall expire\b|\bunless (?:earlier|sooner) terminated\b`),
	"Renewal Term":                       plain(`\brenew(?:s|ed|al)?\b|\bsuccessive\b.{0,40}\b(?:terms?|periods?)\b|\bextend(?:ed)? (?:the|this) (?:term|agreement)\b`),
	"Notice Period To Terminate Renewal": plain(`\brenew.{0,200}\bnotice\b|\bnotice\b.{0,120}\b(?:renew|expiration of the)|\bnon-?renewal\b`),
	"Governing Law":                      plain(`\bgovern(?:ed|ing)\b.{0,60}\blaws?\b|\bconstrued\b.{0,80}\blaws? of\b`),
	"Most Favored Nation":                plain(`\bmost[- ]favou?red\b|\b(?:no|not) less favou?rable\b|\bmore favou?rable (?:terms|price)`),
	"Non-Compete":                        plain(`\bnon-?compet|\bcompet(?:e|es|ing|itive)\b`),
	"Exclusivity":                        plain(`\bexclusiv(?:e|ely|ity)\b`),
	"No-Solicit Of Customers":            plain(`\bsolicit\w*\b.{0,120}\b(?:customer|client|account)s?\b|\b(?:customer|client|account)s?\b.{0,120}\bsolicit`),
	"No-Solicit Of Employees":            plain(`\b(?:solicit|hire|recruit)\b.{0,120}\bemploy`),
	"Non-Disparagement":                  plain(`\bdisparag|\bderogatory\b|\breflect (?:adversely|unfavou?rably)\b`),
	"Termination For Convenience":        plain(`\bterminat\w+\b.{0,120}\b(?:without cause|for convenience|for any reason|any time|no reason)\b|\bmay terminate\b.{0,60}\bupon\b.{0,40}\bnotice\b`),
	"Rofr/Rofo/Rofn":                     plain(`\b(?:right of )?first (?:refusal|offer|negotiation)\b|\bfirst right\b|\boption to (?:purchase|acquire|license)\b`),
	"Change Of Control":                  plain(`\bchange (?:of|in) control\b|\bmerger\b|\bacquisition of (?:all|substantially)\b|\bvoting (?:stock|securities|power)\b`),
	"Anti-Assignment":                    plain(`\b(?:not|neither)\b.{0,80}\bassign(?:ed|able)?\b|\bassign\b.{0,80}\bconsent\b`),
	"Revenue/Profit Sharing":             plain(`\broyalt(?:y|ies)\b|\b(?:revenue|profit)s?[- ]shar|\bcommissions?\b|\b\d+ ?%\)? of\b.{0,40}\b(?:revenue|sales|profit|receipts|fees)`),
	"Price Restrictions":                 plain(`\bprices?\b.{0,60}\b(?:not|no)\b.{0,40}\b(?:increase|exceed|raise)|\b(?:increase|raise|reduce)\b.{0,40}\bprices?\b`),
	"Minimum Commitment":                 plain(`\bminimum\b`),
	"Volume Restriction":                 plain(`\b(?:not|no more than|up to|maximum|exceed)\b.{0,60}\b(?:users?|copies|units|quantit|hours|volume)`),
	"Ip Ownership Assignment":            plain(`\b(?:hereby )?assigns?\b.{0,80}\b(?:right|title|interest)|\bwork made for hire\b|\bexclusive property of\b`),
	"Joint Ip Ownership":                 plain(`\bjoint(?:ly)? own|\bjoint (?:intellectual|invention|patent|ip)`),
	"License Grant":                      plain(`\bgrants?\b.{0,120}\b(?:licen[sc]e|right)\b`),
	"Non-Transferable License":           plain(`\bnon-?transferable\b|\bnot\b.{0,30}\b(?:transfer|sub-?licen[sc]e)`),
	"Affiliate License-Licensor":         plain(`\b(?:licensor|company)\b.{0,40}\baffiliates?\b.{0,60}\bgrants?\b|\bgrants?\b.{0,60}\bon behalf of\b.{0,40}\baffiliates?\b`),
	"Affiliate License-Licensee":         plain(`\blicen[sc]e\b.{0,160}\baffiliates?\b`),
	"Unlimited/All-You-Can-Eat-License":  plain(`\bunlimited\b|\benterprise[- ]wide\b`),
	"Irrevocable Or Perpetual License":   plain(`\b(?:irrevocable|perpetual)\b`),
	"Source Code Escrow":                 plain(`\bescrow\b`),
	"Post-Termination Services":          plain(`\b(?:after|upon|following)\b.{0,40}\b(?:termination|expiration)\b`),
	"Audit Rights":                       plain(`\baudit|\binspect\b|\bbooks and records\b`),
	"Uncapped Liability":                 plain(`\b(?:limit\w*|liab\w+|damages)\b.{0,250}\b(?:not apply|except|other than)|\bexcept\b.{0,250}\b(?:liab\w+|damages)\b|\bunlimited liability\b`),
	"Cap On Liability":                   plain(`\bliab(?:le|ility)\b.{0,200}\b(?:exceed|limited to|indirect|consequential|punitive)|\bin no event\b.{0,80}\bliable\b`),
	"Liquidated Damages":                 plain(`\bliquidated damages\b|\bpenalt(?:y|ies)\b|\btermination fee\b`),
	"Warranty Duration":                  plain(`\bwarrant\w*\b.{0,300}\b(?:days|months?|years?)\b|\b(?:days|months?|years?)\b.{0,120}\bwarrant|\bwarranty period\b`),
	"Insurance":                          plain(`\binsurance\b|\binsured\b`),
	"Covenant Not To Sue":                plain(`\bcovenants? not to\b|\b(?:contest|challenge|dispute)\b.{0,60}\b(?:validity|ownership|title|rights?)\b|\bnot (?:bring|commence)\b.{0,40}\b(?:action|claim|suit)`),
	"Third Party Beneficiary":            plain(`\bthird[- ]party beneficiar`),
}

func plain(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + pattern) }

var sentenceEnd = regexp.MustCompile(`[.;:!?]["')\]]*\s+|\n\s*\n`)

// sentences cuts a text after each end mark that is followed by space, and at blank lines.
func sentences(text string) []cuad.Span {
	var all []cuad.Span
	begin := 0
	put := func(end int) {
		trimmed := strings.TrimLeft(text[begin:end], " \t\r\n")
		start := end - len(trimmed)
		if trimmed = strings.TrimSpace(trimmed); len(trimmed) > 20 {
			all = append(all, cuad.Span{Start: start, End: start + len(trimmed)})
		}
		begin = end
	}
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		put(m[1])
	}
	put(len(text))
	return all
}

// Passages are what it finds of each kind.
func Passages(text string) map[string][]cuad.Span {
	found := map[string][]cuad.Span{}
	for _, s := range sentences(text) {
		sentence := strings.Join(strings.Fields(text[s.Start:s.End]), " ")
		for kind, pattern := range patterns {
			if pattern.MatchString(sentence) {
				found[kind] = append(found[kind], s)
			}
		}
	}
	return found
}

// Knows says that there is an expression for the kind.
func Knows(kind string) bool { return patterns[kind] != nil }
