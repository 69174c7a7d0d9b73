package offline

import (
	"regexp"
	"strings"
)

var (
	notParties = wordSet(`shall will may must in no event the this that if such any all each either neither both party parties
		section article exhibit agreement it they we you upon during no not and or however provided therefore nothing
		notwithstanding except to of by for other others its their his at on as
		be is are was has have had from with under before after where when which who whose than then so each`)
	recipients = wordSet(`reseller resellers customer customers distributor licensee buyer purchaser client subscriber franchisee
		lessee tenant borrower recipient dealer user subscriber`)
	providers = wordSet(`licensor supplier vendor provider seller manufacturer franchisor lessor landlord lender publisher
		developer contractor consultant`)
	recipientWord = regexp.MustCompile(`\b(?:Reseller|Customer|Distributor|Licensee|Buyer|Purchaser|Client|Subscriber|Franchisee|Lessee|Tenant|Dealer)\b`)
)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// party is the name in what a rule took for one, written as the text mostly writes it; "" if it is none.
func (t *text) party(raw string) string {
	all := strings.Fields(raw)
	for len(all) > 0 && notParties[strings.ToLower(all[0])] {
		all = all[1:]
	}
	for len(all) > 0 && notParties[strings.ToLower(all[len(all)-1])] {
		all = all[:len(all)-1]
	}
	name := strings.Join(all, " ")
	if len(name) < 3 || name != strings.ToUpper(name) {
		return name
	}
	mixed, err := regexp.Compile(`(?i)\b` + regexp.QuoteMeta(name) + `\b`)
	if err != nil {
		return name
	}
	for _, found := range mixed.FindAllString(t.plain, -1) {
		if found != strings.ToUpper(found) && found != strings.ToLower(found) {
			return found
		}
	}
	return spoken(name)
}

// sideOf is whose side a party is on. A name that is no role is the other side where the text has one of our roles.
func (t *text) sideOf(who string) side {
	for _, w := range strings.Fields(strings.ToLower(who)) {
		if recipients[w] {
			return ours
		}
		if providers[w] {
			return theirs
		}
	}
	if recipientWord.MatchString(t.plain) {
		return theirs
	}
	return anybody
}
