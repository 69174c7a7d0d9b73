package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

// answer is what the model that ships says.
func answer(r pipeline.Request) (string, error) { return answerBy(nil, r) }

// answerTo is what one check finds in a text.
func answerTo(t *testing.T, d pipeline.Definition, check, text string) []finding {
	t.Helper()
	call, _, ok := d.Find("check." + check)
	if !ok {
		t.Fatalf("there is no check %s", check)
	}
	body, err := answer(pipeline.Request{
		Shared: render(t, d.Shared, pipeline.PromptData{Text: text}), Schema: d.Schemas[call.Schema], MaxTokens: call.MaxTokens,
		Prompt: render(t, d.Prompts[call.Prompt], pipeline.PromptData{Vars: call.Vars}),
	})
	if err != nil {
		t.Fatalf("%s: %v", check, err)
	}
	var f findings
	if err := json.Unmarshal([]byte(body), &f); err != nil {
		t.Fatalf("%s: %v", check, err)
	}
	return f.Findings
}

func titlesOf(all []finding) string {
	var titles []string
	for _, f := range all {
		titles = append(titles, f.Title)
	}
	return strings.Join(titles, "; ")
}

// edits are clauses and what one check says of each: of the clause, of the same clause after an edit, and of words
// about something near, which are not its business.
var edits = []struct {
	check                  string
	clause, says           string
	edited, saysThen       string
	beside                 string
	severity, severityThen pipeline.Severity
}{
	{
		check:  "liability.cap-present",
		clause: "Each party's total aggregate liability under this Agreement shall not exceed the fees paid in the twelve (12) months before the claim.", says: "Liability is capped", severity: pipeline.Low,
		edited: "In no event shall Supplier be liable to Customer for any direct, indirect or consequential damages.", saysThen: "Supplier excludes all liability, direct loss included", severityThen: pipeline.Critical,
		beside: "Supplier shall maintain liability insurance with a reputable insurer.",
	},
	{
		check:  "liability.mutual",
		clause: "In no event shall Supplier be liable to Customer for indirect damages.", says: "The limits protect Supplier only", severity: pipeline.High,
		edited: "In no event shall either party be liable to the other for indirect damages.", saysThen: "",
		beside: "In no event shall notice be given later than Friday.",
	},
	{
		check:  "liability.consequential-loss",
		clause: "Neither party shall be liable for any indirect, incidental or consequential damages.", says: "Mutual exclusion of consequential loss", severity: pipeline.Low,
		edited: "In no event shall Licensor be liable to Licensee for any indirect, incidental or consequential damages.", saysThen: "One-way exclusion of consequential loss", severityThen: pipeline.High,
		beside: "Neither party shall be liable for delay caused by a flood.",
	},
	{
		check:  "liability.cap-amount",
		clause: "The total liability of Supplier is limited to the fees paid in the previous six (6) months.", says: "The cap is less than a year's fees", severity: pipeline.High,
		edited: "The total liability of Supplier is limited to the fees paid in the previous twenty-four (24) months.", saysThen: "",
		beside: "The fees of the previous six (6) months are paid in arrears.",
	},
	{
		check:  "liability.limitation-period",
		clause: "No action arising out of this Agreement may be brought more than one (1) year after the cause of action arose.", says: "Short time limit for claims", severity: pipeline.Medium,
		edited: "Actions arising out of this Agreement may be brought within the time that the law provides.", saysThen: "",
		beside: "No party may resign as director more than one (1) time.",
	},
	{
		check:  "indemnity.mutual",
		clause: "Customer shall indemnify and hold Supplier harmless against all claims.", says: "Customer indemnifies, one way", severity: pipeline.High,
		edited: "Each party shall indemnify the other against third-party claims.", saysThen: "Mutual indemnity", severityThen: pipeline.Info,
		beside: "Customer shall inform Supplier of all claims.",
	},
	{
		check:  "indemnity.triggers",
		clause: "Reseller shall indemnify Supplier against losses from any act or omission of Reseller.", says: "Indemnity for any act or omission", severity: pipeline.High,
		edited: "Reseller shall indemnify Supplier against losses from the gross negligence of Reseller.", saysThen: "",
		beside: "Reseller answers for no act of God.",
	},
	{
		check:  "term-termination.initial-term",
		clause: "This Agreement shall commence on the Effective Date and continue in effect for a term of three (3) years.", says: "First term of 3 years", severity: pipeline.Info,
		edited: "This Agreement shall commence on the Effective Date and continue in effect for a term of five (5) years.", saysThen: "First term of 5 years", severityThen: pipeline.Info,
		beside: "Supplier has been in business for thirty years.",
	},
	{
		check:  "term-termination.auto-renewal",
		clause: "The term shall automatically renew for successive periods of one (1) year.", says: "Renews by itself", severity: pipeline.Medium,
		edited: "Nothing in this Agreement shall obligate either party to renew it.", saysThen: "No right to renew", severityThen: pipeline.Medium,
		beside: "The invoice is paid automatically.",
	},
	{
		check:  "term-termination.convenience",
		clause: "Supplier may terminate this Agreement at any time without cause.", says: "Supplier may leave at any time, without cause", severity: pipeline.Critical,
		edited: "Either party may terminate this Agreement at any time without cause upon ninety (90) days' notice.", saysThen: "Either party may leave without cause", severityThen: pipeline.Low,
		beside: "Supplier may visit the premises at any time.",
	},
	{
		check:  "term-termination.cause-and-cure",
		clause: "A party may terminate if a breach remains uncured for five (5) days after notice.", says: "Only 5 days to cure", severity: pipeline.Medium,
		edited: "A party may terminate if a breach remains uncured for sixty (60) days after notice.", saysThen: "",
		beside: "The paint must dry for five (5) days.",
	},
	{
		check:  "assignment-control.consent",
		clause: "Neither party may assign this Agreement without the prior written consent of the other party.", says: "Assignment needs consent", severity: pipeline.Low,
		edited: "Supplier may freely assign this Agreement to any third party.", saysThen: "Supplier may assign freely", severityThen: pipeline.Medium,
		beside: "Tasks are given to the staff by the project manager.",
	},
	{
		check:  "assignment-control.affiliates",
		clause: "Supplier may assign this Agreement to an affiliate on notice.", says: "Only Supplier may assign in its group", severity: pipeline.Medium,
		edited: "Either party may assign this Agreement to an affiliate on notice.", saysThen: "",
		beside: "Supplier may hire an affiliate.",
	},
	{
		check:  "ip-licence.reverse-engineering",
		clause: "Licensee shall not reverse engineer the Software.", says: "Absolute ban on copying and analysing", severity: pipeline.Low,
		edited: "Licensee may reverse engineer the Software for interoperability.", saysThen: "",
		beside: "Licensee shall not sell alcohol.",
	},
	{
		check:  "ip-licence.licence-term",
		clause: "Customer hereby grants to Supplier a perpetual, irrevocable licence to use the data.", says: "Perpetual or irrevocable grant", severity: pipeline.High,
		edited: "Customer hereby grants to Supplier a licence to use the data during the term.", saysThen: "",
		beside: "The parties wish for perpetual peace.",
	},
	{
		check:  "restrictive-covenants.exclusivity",
		clause: "Reseller shall not purchase the Products from anyone other than Supplier.", says: "Reseller may buy from one source only", severity: pipeline.High,
		edited: "Reseller may purchase the Products from anyone.", saysThen: "",
		beside: "Reseller shall not enter the laboratory.",
	},
	{
		check:  "restrictive-covenants.employee-non-solicit",
		clause: "Customer shall not solicit or hire any employees of Supplier.", says: "One-way ban on hiring", severity: pipeline.Medium,
		edited: "Customer may hire its own staff.", saysThen: "",
		beside: "Customer has three hundred staff.",
	},
	{
		check:  "privacy-confidentiality.mutual",
		clause: "Customer shall keep the Confidential Information confidential.", says: "Confidentiality binds Customer only", severity: pipeline.High,
		edited: "Each party shall keep the other's information confidential.", saysThen: "Mutual confidentiality", severityThen: pipeline.Info,
		beside: "Customer shall keep the premises clean.",
	},
	{
		check:  "privacy-confidentiality.duration",
		clause: "The confidentiality obligations survive termination.", says: "Confidentiality without an end", severity: pipeline.Medium,
		edited: "The information shall be kept confidential for a period of three (3) years after termination.", saysThen: "Confidentiality for 3 years", severityThen: pipeline.Low,
		beside: "The payment obligations survive termination.",
	},
	{
		check:  "commercial-payment.payment-time",
		clause: "Customer shall pay all sums within ten (10) days of the date of the invoice.", says: "Payment within 10 days", severity: pipeline.Medium,
		edited: "Customer shall pay all sums within sixty (60) days of the date of the invoice.", saysThen: "Payment within 60 days", severityThen: pipeline.Low,
		beside: "Delivery takes place within ten (10) days of the order.",
	},
	{
		check:  "commercial-payment.late-interest",
		clause: "Overdue sums bear interest at 2% per month.", says: "Interest of 2 % a month", severity: pipeline.Medium,
		edited: "Overdue sums bear interest at the statutory rate.", saysThen: "",
		beside: "The parties have an interest in good relations.",
	},
	{
		check:  "commercial-payment.price-increase",
		clause: "Supplier may increase its prices at any time.", says: "Prices can be changed at will", severity: pipeline.Critical,
		edited: "Prices are fixed for the term.", saysThen: "",
		beside: "Supplier may visit at any time.",
	},
	{
		check:  "warranty-sla.disclaimer",
		clause: "Supplier disclaims all warranties, express or implied.", says: "All other warranties are disclaimed", severity: pipeline.Medium,
		edited: "Supplier warrants that the Products are free from defects.", saysThen: "",
		beside: "Supplier claims all refunds.",
	},
	{
		check:  "warranty-sla.warranty-period",
		clause: "Supplier warrants the Products for a period of ninety (90) days after delivery.", says: "Warranty of 90 days only", severity: pipeline.Medium,
		edited: "Supplier sells the Products without more.", saysThen: "",
		beside: "The office is closed for a period of ninety (90) days.",
	},
	{
		check:  "disputes-drafting.governing-law",
		clause: "This Agreement shall be governed by the laws of the State of Delaware.", says: "Law of Delaware", severity: pipeline.Low,
		edited: "This Agreement shall be governed by the laws of the State of Texas.", saysThen: "Law of Texas", severityThen: pipeline.Low,
		beside: "The committee shall be headed by the president of the company.",
	},
	{
		check:  "disputes-drafting.amendment",
		clause: "Supplier may modify the terms of this Agreement at any time in its sole discretion.", says: "Terms can be changed by one party", severity: pipeline.High,
		edited: "No amendment of this Agreement is valid unless in writing and signed by both parties.", saysThen: "Changes need writing and both signatures", severityThen: pipeline.Info,
		beside: "Supplier may modify the colour of the box.",
	},
	{
		check:  "insurance-compliance.insurance-amount",
		clause: "Reseller shall maintain insurance with limits of $5,000,000 per claim.", says: "Insurance of $5,000,000 a claim", severity: pipeline.Medium,
		edited: "Reseller shall maintain insurance that is customary in its trade.", saysThen: "Insurance must be carried", severityThen: pipeline.Low,
		beside: "Reseller shall pay $5,000,000 at closing.",
	},
	{
		check:  "insurance-compliance.audit",
		clause: "Supplier may audit the books and records of Reseller.", says: "Audit without limits", severity: pipeline.Medium,
		edited: "Supplier may audit the books and records of Reseller once a year on thirty (30) days' prior notice.", saysThen: "Audit right", severityThen: pipeline.Info,
		beside: "Supplier may read the newspapers.",
	},
}

func TestEachCheckAnswersItsOwnQuestion(t *testing.T) {
	d := definition(t, "contract-review", "full")
	for _, e := range edits {
		t.Run(e.check+" tells a clause from its edit", func(t *testing.T) {
			says(t, answerTo(t, d, e.check, e.clause), e.says, e.severity)
			says(t, answerTo(t, d, e.check, e.edited), e.saysThen, e.severityThen)
			if got := answerTo(t, d, e.check, e.edited); e.saysThen != e.says && strings.Contains(titlesOf(got), e.says) {
				t.Errorf("the edited clause still gets %q", e.says)
			}
		})
		t.Run(e.check+" is silent on other matters", func(t *testing.T) {
			if got := answerTo(t, d, e.check, e.beside); len(got) > 0 {
				t.Errorf("got %q of %q, want nothing", titlesOf(got), e.beside)
			}
		})
	}
	if len(edits) < 20 {
		t.Errorf("only %d checks are tried", len(edits))
	}
}

func says(t *testing.T, all []finding, title string, severity pipeline.Severity) {
	t.Helper()
	if title == "" {
		return
	}
	for _, f := range all {
		if f.Title == title {
			if f.Severity != severity {
				t.Errorf("%q: got severity %s, want %s", title, f.Severity, severity)
			}
			return
		}
	}
	t.Errorf("got %q, want %q among them", titlesOf(all), title)
}
