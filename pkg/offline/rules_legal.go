package offline

import "holdfast/pkg/pipeline"

// Rules of the analysts insurance-compliance and disputes-drafting.

var complianceRules = []rule{
	{
		check: "insurance-compliance.insurance-amount", when: re(`\binsurance\b.*\$ ?(?P<n>\d[\d,]+)`), above: 1000000,
		title: "Insurance of ${n} a claim", why: "Cover of ${n} must be carried.",
		redline: "... of up to one million dollars (US$1,000,000) per occurrence.", sure: 0.85,
	},
	{
		check: "insurance-compliance.insurance-amount", when: re(`\b(?:maintain|carry|obtain)\b.{0,100}\binsurance\b`), unless: re(`\$ ?\d`), stands: accepts,
		title: "Insurance must be carried", why: "Insurance is required.", sure: 0.7,
	},
	{
		check: "insurance-compliance.additional-insured", when: re(`\badditional (?:named )?insured\b`),
		title: "Must be named on every policy", why: "The other party becomes an insured and must be told of changes; insurers rarely accept that for professional cover.",
		redline: "... on the general liability policy ...", sure: 0.8,
	},
	{
		check: "insurance-compliance.insurance-tail", when: re(`\binsurance\b.{0,200}\bthereafter\b|\bperiod of [a-z]+ \((?P<n>\d+)\) years? thereafter\b.{0,80}\binsurance\b`),
		title: "Insurance goes on after the end", why: "Cover must be kept and paid for after the contract has ended.", sure: 0.75,
	},
	{
		check: "insurance-compliance.audit", when: re(`\b(?:audit|inspect|examine)\b.{0,80}\b(?:books|records|premises|facilit|accounts)`), unless: re(`\b(?:once|annual|not more than|no more than|\d+\)? days'? (?:prior|advance|written))`),
		title: "Audit without limits", why: "How often, with what notice and how far is not limited.",
		redline: "... once a year, on thirty (30) days' notice, during business hours, at the auditor's cost.", sure: 0.7,
	},
	{
		check: "insurance-compliance.audit", when: re(`\b(?:audit|inspect|examine)\b.{0,80}\b(?:books|records|accounts)`), stands: accepts, at: pipeline.Info,
		title: "Audit right", why: "Books and records may be audited.", sure: 0.6,
	},
	{
		check: "insurance-compliance.reports", when: re(`\bas (?:frequently|often) as\b.{0,60}\brequests?\b|\bany other information\b.{0,120}\brequests?\b`),
		title: "Reports as often as asked", why: "How often and what to report is in the other party's hands.",
		redline: "... quarterly, in the form of Exhibit __.", sure: 0.8,
	},
	{
		check: "insurance-compliance.reports", when: re(`\bwithin (?:[a-z]+ )?\(?(?P<n>\d{1,2})\)? days after WHO learns\b`), of: ours, below: 10, at: pipeline.Low,
		title: "Notice within {n} days", why: "Claims must be reported {n} days after they became known.", sure: 0.7,
	},
	{
		check: "insurance-compliance.anti-bribery", when: re(`\bforeign corrupt practices\b|\b(?:anti-?)?(?:brib|corruption)`), stands: accepts,
		title: "Anti-corruption law is named", why: "The text refers to anti-corruption law.", sure: 0.7,
	},
	{
		check: "insurance-compliance.export", when: re(`\b(?:export (?:control|administration|law)\w*|government controls|sanctions)\b.{0,200}\b(?:comply|violation|liable)|\b(?:comply|violation|liable|fails)\b.{0,200}\b(?:export (?:control|law)|government controls|sanctions)`),
		title: "Export control is one party's risk", why: "Export rules and sanctions, also for acts of others, fall on one party.",
		redline: "Each party complies with the export rules that apply to its own acts.", sure: 0.7,
	},
	{
		check: "insurance-compliance.compliance", when: re(`\b(?:comply|compliance) with (?:any and )?all applicable\b.{0,80}\b(?:laws|regulations|rules)\b|\bcomply with all laws\b`), at: pipeline.Low,
		title: "Compliance with all laws", why: "The duty covers every applicable law, not only those that concern the party's own business.", sure: 0.7,
	},
	{
		check: "insurance-compliance.compliance", when: re(`\bcause WHO to be in violation\b.{0,80}\bany (?:law|jurisdiction)`),
		title: "Must keep the other party lawful everywhere", why: "One party answers for the other's compliance in every jurisdiction.",
		redline: "Delete, or limit to wilful acts.", sure: 0.8,
	},
}

var disputeRules = []rule{
	{
		check: "disputes-drafting.governing-law", when: re(`\bgoverned by\b.{0,80}\blaws? of (?:the )?(?:(?:state|commonwealth|province) of )?(?P<x>(?-i:[A-Z][A-Za-z]+(?: (?:York|Jersey|Mexico|Hampshire|Carolina|Dakota|Kingdom|States|Virginia|Island))?))`), unless: re(`laws? of (?:the )?governing`), stands: accepts,
		title: "Law of {x}", why: "The law of {x} governs.", sure: 0.9,
	},
	{
		check: "disputes-drafting.venue", when: re(`\bcourt of competent jurisdiction, wherever located\b`),
		title: "Injunctions in any court, anywhere", why: "The other party may choose any court in the world.",
		redline: "... the courts of the defendant's place of business.", sure: 0.8,
	},
	{
		check: "disputes-drafting.venue", when: re(`\bexclusive (?:jurisdiction|venue)\b|\bjurisdiction of the (?:state and federal )?courts\b|\bcourts? (?:located )?(?:in|of) (?:the )?(?:state|county|city)\b`), stands: accepts,
		title: "Choice of courts", why: "The courts are chosen.", sure: 0.75,
	},
	{
		check: "disputes-drafting.arbitration", when: re(`\bcustomer shall appoint\b.{0,40}\barbitrator`),
		title: "An arbitrator is chosen by a stranger to the contract", why: "A customer, who is not a party, appoints an arbitrator, and one party has none: probably an error.",
		redline: "Each party shall appoint one (1) arbitrator, and the two shall choose the third.", sure: 0.85,
	},
	{
		check: "disputes-drafting.arbitration", when: re(`\b(?:award|arbitrators?)\b.{0,80}\bshall not (?:include|award)\b.{0,80}\b(?:indirect|incidental|punitive|consequential)`),
		title: "Arbitrators may not award indirect loss", why: "What can be claimed is cut down once more by the arbitration clause.", sure: 0.75,
	},
	{
		check: "disputes-drafting.arbitration", when: re(`\b(?:binding|exclusively|finally)\b.{0,40}\barbitration\b|\barbitration (?:shall|will) be conducted in\b`), stands: accepts,
		title: "Disputes go to arbitration", why: "State courts are excluded, except for interim relief.", sure: 0.8,
	},
	{
		check: "disputes-drafting.jury-waiver", when: re(`\bwaives?\b.{0,60}\b(?:trial by jury|jury trial)`), stands: accepts,
		title: "Jury trial is waived", why: "The waiver binds both parties.", sure: 0.85,
	},
	{
		check: "disputes-drafting.amendment", when: re(`\b(?:right to|may) (?:modify|amend|change|revise)\b.{0,100}\b(?:terms|agreement|policies)\b.{0,100}\b(?:sole discretion|from time to time|at any time|by notice)`), unless: mutual,
		title: "Terms can be changed by one party", why: "One party may change the terms alone.",
		redline: "... with the other party's written consent.", sure: 0.85,
	},
	{
		check: "disputes-drafting.amendment", when: re(`\b(?:no|any) (?:supplement|modification|amendment|change)\b.{0,100}\b(?:in writing|written|signed)\b`), stands: preferred,
		title: "Changes need writing and both signatures", why: "The contract is changed in writing only.", sure: 0.8,
	},
	{
		check: "disputes-drafting.precedence", when: re(`\bterms in WHO's purchase orders\b|\bpurchase orders?\b.{0,80}\bshall not apply\b`), of: ours,
		title: "Our order terms are excluded", why: "The terms of our orders do not apply, while the other party's invoices do.",
		redline: "Standard terms of either party do not apply.", sure: 0.8,
	},
	{
		check: "disputes-drafting.precedence", when: re(`\bentire agreement\b`), stands: accepts,
		title: "Entire agreement", why: "Earlier statements have no effect; an order of precedence is not stated here.", sure: 0.75,
	},
	{
		check: "disputes-drafting.precedence", when: re(`\bin accordance with WHO's policies\b|\bpolicies as announced\b`), of: theirs,
		title: "The other party's policies are part of it", why: "Policies that can change at any time bind us.", sure: 0.75,
	},
	{
		check: "disputes-drafting.force-majeure", when: re(`\bacts? of god\b|\bforce majeure event\b.{0,30}\bmeans\b|\bbeyond (?:its|that party's|their) (?:reasonable )?control\b`),
		title: "Force majeure without an end", why: "Performance is excused as long as the event lasts; nobody may leave.",
		redline: "If it lasts more than sixty (60) days, either party may terminate.", sure: 0.7,
	},
	{
		check: "disputes-drafting.drafting", when: re(`\bmutually (?:agreed|agreeable)\b|\bto be agreed\b|\bas (?:may be )?agreed (?:upon )?between\b`), at: pipeline.Low,
		title: "An agreement to agree", why: "What is left to later agreement cannot be enforced.", sure: 0.65,
	},
	{
		check: "disputes-drafting.drafting", when: re(`\bdeemed by WHO to be sufficient\b|\bfor any other reason whatsoever\b|\bto WHO's satisfaction\b`),
		title: "Free discretion on what matters", why: "Nothing limits the decision; a dispute about it can hardly be won.", sure: 0.7,
	},
}
