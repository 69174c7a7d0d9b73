package offline

import "holdfast/pkg/pipeline"

// Rules of the analysts ip-licence, restrictive-covenants and privacy-confidentiality.

var ipRules = []rule{
	{
		check: "ip-licence.ownership", when: re(`\bWHO shall own all\b|\ball (?:work product|deliverables|improvements|modifications)\b.{0,80}\b(?:owned by|property of) WHO\b`), unless: mutual, of: theirs,
		title: "{who} owns what the other party develops", why: "What is developed at our cost belongs to {who}.",
		redline: "Reseller owns the software that it develops; {who} keeps its own software on which it is based.", sure: 0.85,
	},
	{
		check: "ip-licence.ownership", when: re(`\bWHO (?:shall|will)? ?(?:retains?|reserves?|owns?) (?:all|any and all) right,? title,? and interest\b`), of: theirs, stands: accepts,
		title: "{who} keeps the rights in its product", why: "{who} keeps all rights that are not granted.", sure: 0.8,
	},
	{
		check: "ip-licence.assignment-of-developments", when: re(`\b(?:hereby (?:irrevocably )?assigns?|agrees to assign|shall assign)\b.{0,120}\b(?:right|title|interest|improvement)`), unless: re(`\bthis agreement\b.{0,30}\bassign`),
		title: "Improvements are assigned without payment", why: "Everything that we add to the product passes to the other party, exclusively and for nothing.",
		redline: "Reseller grants a non-exclusive licence to use its improvements, for the term.", sure: 0.9,
	},
	{
		check: "ip-licence.licence-scope", when: re(`\blicen[sc]e to use one copy\b|\bone (?:\(1\) )?copy of the\b`),
		title: "Licence for one copy only", why: "The licence covers a single copy for demonstration; that may be less than performance needs.",
		redline: "... as many copies as are needed to demonstrate, support and train.", sure: 0.75,
	},
	{
		check: "ip-licence.licence-scope", when: re(`\bgrants?\b.{0,120}\b(?:non-?exclusive|non-?transferable)\b.{0,80}\b(?:licen[sc]e|right)\b`), unless: re(`one copy`), stands: accepts,
		title: "Non-exclusive, limited licence", why: "The licence is non-exclusive or cannot be transferred.", sure: 0.75,
	},
	{
		check: "ip-licence.licence-term", when: re(`\b(?:grant|licen[sc]e|assign)\w*\b.{0,120}\b(?:perpetual|irrevocable)\b|\b(?:perpetual|irrevocable)\b.{0,80}\b(?:licen[sc]e|assignment|right)\b`),
		title: "Perpetual or irrevocable grant", why: "The grant cannot be ended, not even when the contract was broken.",
		redline: "... for the term of this Agreement ...", sure: 0.8,
	},
	{
		check: "ip-licence.disabling", when: re(`\b(?:may|to) disable\b|\bdisabl(?:e|ing) (?:use|device|code)\b|\b(?:kill switch|time bomb)\b`),
		title: "The software can be disabled", why: "The supplier can switch the software off by itself, at customers too, without a court's decision.",
		redline: "The software contains no code that can disable it; licence metering is disclosed in the documentation.", sure: 0.9,
	},
	{
		check: "ip-licence.disabling", when: re(`\bwithout (?:providing )?notice\b.{0,60}\b(?:include|insert)\b.{0,60}\b(?:code|markings)\b`), at: pipeline.High,
		title: "Hidden code may be put into the software", why: "The supplier may watch use with code that nobody is told about.", sure: 0.8,
	},
	{
		check: "ip-licence.marks", when: re(`\bWHO (?:hereby )?grants to\b.{0,60}\blicen[sc]e to use the\b.{0,40}\bmarks\b`), of: ours, at: pipeline.Low,
		title: "Licence of our marks", why: "Our marks may be used; quality, time and end of use are not settled here.", sure: 0.65,
	},
	{
		check: "ip-licence.marks", when: re(`\b(?:dispute or deny|contest|challenge|deny)\b.{0,30}\bvalidity\b`),
		title: "No challenge to the other party's rights", why: "Validity may not be questioned, not even in defence.",
		redline: "Delete, or: the other party may terminate if its rights are challenged.", sure: 0.75,
	},
	{
		check: "ip-licence.marks", when: re(`\b(?:may not|shall not)\b.{0,60}\b(?:remove|alter|conceal)\b.{0,80}\b(?:trademarks?|marks|notices)\b`), stands: accepts,
		title: "Marks must not be removed", why: "The usual protection of marks and notices.", sure: 0.7,
	},
	{
		check: "ip-licence.source-code", when: re(`\bnot entitled to\b.{0,60}\bsource code\b|\bno (?:right|access) to\b.{0,30}\bsource code\b`),
		title: "No source code, no escrow", why: "If the supplier fails, there is no way to keep the software running.",
		redline: "Source code is deposited with an escrow agent and released on insolvency or end of support.", sure: 0.8,
	},
	{
		check: "ip-licence.source-code", when: re(`\bescrow (?:agent|agreement)\b|\bsource code escrow\b`), stands: preferred,
		title: "Source code escrow", why: "The source code is deposited.", sure: 0.75,
	},
	{
		check: "ip-licence.reverse-engineering", when: re(`\b(?:shall not|may not|no .{0,40}shall have the right to)\b.{0,80}\breverse engineer`),
		title: "Absolute ban on copying and analysing", why: "The exceptions that the law grants, for interoperability for example, are not mentioned.",
		redline: "... except to the extent permitted by mandatory law.", sure: 0.75,
	},
}

var covenantRules = []rule{
	{
		check: "restrictive-covenants.exclusivity", when: re(`\bWHO (?:shall|will|may) not (?:obtain|purchase|buy|source)\b.{0,160}\b(?:other than|except from)\b`), of: ours,
		title: "{who} may buy from one source only", why: "{who} is bound to one supplier, which is itself free to appoint others.",
		redline: "Delete; or limit to the first twelve months and make it mutual.", sure: 0.85,
	},
	{
		check: "restrictive-covenants.exclusivity", when: re(`\b(?:appoints?|engages?|retains?|designates?)\b.{0,240}\b(?:its|their|his|the|an|as) (?:sole and |sole or )?exclusive\b|\bgrants?\b.{0,160}\b(?:the|an|a sole and) exclusive (?:right|licen[sc]e)\b`), unless: re(`non-?exclusive|exclusive (?:remed|jurisdiction|venue|property)`), at: pipeline.Medium,
		title: "Exclusive appointment or right", why: "One party alone gets the right; who is bound and for how long needs a decision.", sure: 0.85,
	},
	{
		check: "restrictive-covenants.exclusivity", when: re(`\b(?:sole and )?exclusive (?:distributor|reseller|supplier|agent|licensee|provider)\b|\bon an exclusive basis\b|\bexclusive right to (?:sell|market|distribute|promote|purchase|supply|license|provide)\b`), unless: re(`non-?exclusive`), at: pipeline.Medium,
		title: "Exclusivity", why: "The right is exclusive; who is bound and for how long needs a decision.", sure: 0.6,
	},
	{
		check: "restrictive-covenants.exclusivity", when: re(`\breserves the right to\b.{0,160}\b(?:appoint additional|other (?:customers|distributors|resellers))`), stands: accepts,
		title: "The supplier may appoint others", why: "Others may be appointed in the same territory.", sure: 0.75,
	},
	{
		check: "restrictive-covenants.non-compete", when: re(`\b(?:shall not|will not|may not|agrees not to)\b.{0,200}\bcompet(?:e|es|ing|itive|itor)`),
		title: "Competing products are forbidden", why: "Dealing in competing products is forbidden.",
		redline: "... the products listed in Exhibit __, during the term and in the Territory only.", sure: 0.85,
	},
	{
		check: "restrictive-covenants.non-compete", when: re(`\b(?:promotes|sells|offers for sale)\b.{0,160}\b(?:competitive with|substituted for)\b`),
		title: "Competing sales by owners or affiliates end the contract", why: "The ban reaches officers, shareholders and affiliates, and the other party judges what competes.",
		redline: "... Reseller itself promotes a product that is listed in Exhibit __ ...", sure: 0.8,
	},
	{
		check: "restrictive-covenants.employee-non-solicit", when: re(`\b(?:offer of employment|solicit|hire|employ)\b.{0,100}\bemployees?\b`), unless: mutual,
		title: "One-way ban on hiring", why: "One party may not hire or approach the other's people, partly after they have left.",
		redline: "During the term and six months after it, neither party shall actively solicit the other's employees.", sure: 0.8,
	},
	{
		check: "restrictive-covenants.customer-non-solicit", when: re(`\bnot (?:seek|solicit)\b.{0,60}\bcustomers?\b`), at: pipeline.Low,
		title: "No active search for customers elsewhere", why: "Active sales are limited.", sure: 0.7,
	},
	{
		check: "restrictive-covenants.customer-non-solicit", when: re(`\bsubmit such leads\b|\bregistered leads\b.{0,60}\b(?:submitted|submit)\b`), at: pipeline.Medium,
		title: "Leads must be handed over", why: "Customer leads go to the supplier, who is free to use them.",
		redline: "Leads remain Reseller's confidential information.", sure: 0.7,
	},
	{
		check: "restrictive-covenants.disparagement", when: re(`\b(?:disparag|reflects? favou?rably|detrimental to)`),
		title: "One-way duty to speak well", why: "Conduct or statements are judged by their effect on the other party's name.", sure: 0.65,
	},
	{
		check: "restrictive-covenants.first-refusal", when: re(`\bright of first (?:refusal|offer|negotiation)\b|\bfirst right to\b`),
		title: "Right of first refusal", why: "Before dealing with others, the right must be offered to the other party.", sure: 0.75,
	},
	{
		check: "restrictive-covenants.territory", when: re(`\b(?:shall not|may not)\b.{0,40}\b(?:sell|market|distribute)\b.{0,120}\boutside\b.{0,20}\bterritory\b`),
		title: "No sales outside the territory", why: "Sales outside are forbidden, also to those who ask by themselves.",
		redline: "... shall not actively market outside the Territory.", sure: 0.85,
	},
	{
		check: "restrictive-covenants.standstill", when: re(`\bwaives?\b.{0,80}\bany defen[sc]e\b`),
		title: "A defence or claim is given up in advance", why: "The waiver applies to disputes that nobody knows yet.", redline: "Delete.", sure: 0.85,
	},
	{
		check: "restrictive-covenants.standstill", when: re(`\b(?:covenants?|agrees?|undertakes?)\b.{0,60}\b(?:not|never)\b.{0,60}\b(?:sue\b|assert\b.{0,60}\bclaims?\b)`),
		title: "A promise not to sue", why: "The party gives up claims, whatever the other does.", redline: "Delete.", sure: 0.85,
	},
	{
		check: "restrictive-covenants.standstill", when: re(`\bcovenants? not to sue\b|\b(?:release|waive|relinquish)\w*\b.{0,80}\b(?:claims?|right to)\b`), unless: re(`\bjury\b|no waiver|waiver (?:of any|shall)|any defen[sc]e|(?:covenants?|agrees?) .{0,60}\bnot\b.{0,60}\bsue\b`),
		title: "Claims are given up in advance", why: "The waiver applies to disputes that nobody knows yet.", redline: "Delete.", sure: 0.75,
	},
	{
		check: "restrictive-covenants.standstill", when: re(`\b(?:not|never|neither)\b.{0,80}\b(?:contest|challenge|dispute|attack|question)\b.{0,80}\b(?:validity|ownership|title|rights?|enforceab)`),
		title: "The other party's rights may not be challenged", why: "Validity or ownership may not be questioned, not even in defence.",
		redline: "Delete, or: the other party may terminate if its rights are challenged.", sure: 0.8,
	},
}

var confidentialityRules = []rule{
	{
		check: "privacy-confidentiality.mutual", when: re(`\bWHO shall (?:hold|keep|maintain|treat|protect)\b.{0,100}\bconfiden`), unless: mutual, of: ours,
		title: "Confidentiality binds {who} only", why: "Only the other party's information is protected.",
		redline: "Each party shall hold the other's Confidential Information in confidence ...", sure: 0.85,
	},
	{
		check: "privacy-confidentiality.mutual", when: re(`\b(?:each party|the receiving party|recipient) (?:shall|will|agrees to)\b.{0,120}\bconfiden`), stands: preferred,
		title: "Mutual confidentiality", why: "Both parties protect each other's information.", sure: 0.75,
	},
	{
		check: "privacy-confidentiality.definition", when: re(`"confidential information"\W+(?:means|shall mean|includes)\W+(?:any and )?all\b`),
		title: "Everything is confidential", why: "The definition covers all information, marked or not, so that it cannot be kept apart.",
		redline: "... information that is marked as confidential or must be understood as such by its nature.", sure: 0.8,
	},
	{
		check: "privacy-confidentiality.definition", when: re(`\bregardless of the manner\b.{0,80}\baccess\b`), at: pipeline.Medium,
		title: "Protected however it became known", why: "Information is bound also when it came from a third party that was free to give it.", sure: 0.75,
	},
	{
		check: "privacy-confidentiality.exceptions", when: re(`\bnot generally (?:known|available) to the public\b`), unless: re(`independently developed|rightfully`),
		title: "Only publicly known information is excepted", why: "What was known before, received from others or developed independently is not excepted.",
		redline: "... except information that was known, is received from a third party without a duty, or is developed independently.", sure: 0.75,
	},
	{
		check: "privacy-confidentiality.exceptions", when: re(`\bindependently developed\b|\b(?:already|previously) known\b|\bpublic domain\b`), stands: preferred,
		title: "Usual exceptions from confidentiality", why: "Known, public or independently developed information is excepted.", sure: 0.75,
	},
	{
		check: "privacy-confidentiality.duration", when: re(`\b(?:confidential information|confidentiality)\b.{0,80}\bsurvive\b|\bsurvive\b.{0,80}\bconfidential`), unless: re(`\bfor (?:a period of )?\w+ (?:\(\d+\) )?years\b`),
		title: "Confidentiality without an end", why: "The duty survives without a limit in time.",
		redline: "... for three (3) years; for trade secrets as long as they are secret.", sure: 0.8,
	},
	{
		check: "privacy-confidentiality.duration", when: re(`\bconfiden.{0,160}\bfor (?:a period of )?(?:[a-z]+ )?\(?(?P<n>\d{1,2})\)? years (?:after|from|following)`), stands: accepts,
		title: "Confidentiality for {n} years", why: "The duty ends {n} years later.", sure: 0.75,
	},
	{
		check: "privacy-confidentiality.return", when: re(`\b(?:shall|will) (?:promptly |immediately )?(?:not retain|return|destroy)\b.{0,160}\b(?:confidential|materials|copies|information)\b|\bshall return to\b.{0,80}\bmaterials\b`),
		title: "No copies may be kept", why: "Everything goes back; copies that the law or back-ups require are not excepted.",
		redline: "... except copies that law or automatic back-ups require, which stay confidential.", sure: 0.7,
	},
	{
		check: "privacy-confidentiality.compelled-disclosure", when: re(`\b(?:disclos\w+)\b.{0,120}\b(?:required by (?:applicable )?law|court order|subpoena|order of a court)|\bto the extent required by (?:applicable )?law\b.{0,120}\bdisclos`), stands: accepts,
		title: "Disclosure required by law is allowed", why: "What the law requires may be disclosed.", sure: 0.7,
	},
	{
		check: "privacy-confidentiality.personal-data", when: re(`\bname,? (?:and )?address\b.{0,40}\bof (?:each|the) customer\b`),
		title: "Customer data passes without terms", why: "Names and addresses of customers go to the other party; nothing says what it may do with them.",
		redline: "... for the purpose of licence management only, under the data processing terms in Exhibit __.", sure: 0.75,
	},
	{
		check: "privacy-confidentiality.personal-data", when: re(`\bpersonal(?:ly identifiable)? (?:data|information)\b|\bdata protection (?:law|legislation|act)\b|\bGDPR\b|\bHIPAA\b`), stands: accepts,
		title: "Personal data is dealt with", why: "The text names personal data or the law on it.", sure: 0.65,
	},
	{
		check: "privacy-confidentiality.security-breach", when: re(`\butmost care\b|\bhighest (?:degree|standard) of care\b`),
		title: "Absolute standard of care", why: "Utmost care is more than anybody can promise, and binds one side only.",
		redline: "... with the care that it uses for its own, and no less than reasonable care.", sure: 0.8,
	},
	{
		check: "privacy-confidentiality.security-breach", when: re(`\b(?:security (?:breach|incident)|unauthori[sz]ed (?:access|disclosure))\b`), stands: accepts,
		title: "Security incidents are dealt with", why: "The text names security incidents or unauthorised access.", sure: 0.6,
	},
}
