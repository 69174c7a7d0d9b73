package offline

import "holdfast/pkg/pipeline"

// Rules of the analysts term-termination and assignment-control.

var termRules = []rule{
	{
		check: "term-termination.initial-term", when: re(`\b(?:agreement|term)\b.{0,80}\b(?:continue|commence|begin|remain|be|in force|in effect)\b.{0,60}\b(?:term|period) of\b[^.]{0,30}?\(?(?P<n>\d{1,3})\)? (?P<x>months|years)`), stands: preferred,
		title: "First term of {n} {x}", why: "The contract runs for {n} {x} from its start.", sure: 0.85,
	},
	{
		check: "term-termination.auto-renewal", when: re(`\b(?:automatically (?:be )?(?:renew|extend)\w*|renew(?:s|ed)? automatically|shall be (?:deemed )?renewed)\b`), at: pipeline.Medium,
		title: "Renews by itself", why: "Without a notice in time the parties are bound again.",
		redline: "The Agreement is renewed only by written agreement.", sure: 0.85,
	},
	{
		check: "term-termination.auto-renewal", when: re(`\b(?:nothing|not)\b.{0,60}\bobligate either party to (?:renew|extend)\b`),
		title: "No right to renew", why: "However well the business went, there is no right to a further term, so what was invested in the market may be lost.",
		redline: "Reseller may renew for two terms of twelve months if it has met its targets.", sure: 0.8,
	},
	{
		check: "term-termination.renewal-notice", when: re(`\b(?P<n>\d{2,3})\)? days\b.{0,50}\b(?:in advance of|prior to|before)\b.{0,60}\b(?:end|expir|terminat|renew|anniversary)`), above: 60,
		title: "Notice {n} days before the end", why: "The wish to renew or to leave must be declared {n} days ahead; the window is easily missed.",
		redline: "... at least thirty (30) days before the end of the term.", sure: 0.75,
	},
	{
		check: "term-termination.convenience", when: re(`\bWHO (?:may|shall have the right to|has the right to|can|will have the right to|reserves the right to)\b.{0,40}\bterminate\b.{0,60}\b(?:at any time|without cause|for any reason|for convenience|for no reason)`), unless: mutual, of: theirs,
		title: "{who} may leave at any time, without cause", why: "{who} can end the contract without a reason; the other party cannot.",
		redline: "Either party may terminate this Agreement without cause on ninety (90) days' written notice.", sure: 0.9,
	},
	{
		check: "term-termination.convenience", when: re(`\bWHO (?:may|shall have the right to|has the right to|can|will have the right to|reserves the right to)\b.{0,40}\bterminate\b.{0,60}\b(?:at any time|without cause|for any reason|for convenience|for no reason)`), unless: mutual, of: ours, stands: preferred,
		title: "{who} may leave without cause", why: "{who} can end the contract without a reason; that is in our favour.", sure: 0.85,
	},
	{
		check: "term-termination.convenience", when: re(`\beither party\b.{0,60}\bterminate\b.{0,80}\b(?:at any time|without cause|for any reason|for convenience)`), stands: accepts,
		title: "Either party may leave without cause", why: "Both parties can end the contract without a reason.", sure: 0.85,
	},
	{
		check: "term-termination.convenience", when: re(`\bterminat\w*\b.*\bnot less than [a-z-]+ \((?P<n>\d{1,2})\) days'? .{0,20}notice|\bterminat\w*\b.{0,80}\bupon\b.{0,20}\((?P<n2>\d{1,2})\) days`), below: 30, at: pipeline.High,
		title: "Only {n} days' notice of termination", why: "{n} days are too few to tell customers and to wind down.",
		redline: "... on at least ninety (90) days' written notice.", sure: 0.85,
	},
	{
		check: "term-termination.cause-and-cure", when: re(`\b(?:unremedied|uncured|cured?|remed(?:y|ied))\b.{0,60}\((?P<n>\d{1,2})\)\s+(?:business )?days`), below: 30, at: pipeline.Medium,
		title: "Only {n} days to cure", why: "A breach becomes a reason to terminate after {n} days.",
		redline: "... remains unremedied thirty (30) days after written notice.", sure: 0.85,
	},
	{
		check: "term-termination.cause-and-cure", when: re(`\bno cure period\b`),
		title: "Most breaches cannot be cured", why: "Where no time to cure is stated, there is none: the contract can end at once.",
		redline: "Each right to terminate for breach requires written notice and thirty (30) days to cure.", sure: 0.9,
	},
	{
		check: "term-termination.cause-and-cure", when: re(`\brepeatedly breach|\bany (?:other )?breach\b.{0,60}\bterminat`), at: pipeline.Medium,
		title: "Cured breaches still count", why: "Breaches that were cured in time, or small ones, can be added up to a reason to terminate.",
		redline: "... three or more material breaches within twelve months.", sure: 0.75,
	},
	{
		check: "term-termination.trigger-events", when: re(`\b(?P<who>(?-i:[A-Z][A-Za-z0-9&-]+))'s (?:reasonable |sole )?opinion\b`), of: theirs,
		title: "{who}'s opinion decides", why: "Whether the event has happened is left to {who}'s opinion.",
		redline: "... as shown by objective evidence ...", sure: 0.8,
	},
	{
		check: "term-termination.trigger-events", when: re(`\bWHO is negligent in\b|\bWHO fails to (?:comply|execute|deliver)\b`), of: ours, at: pipeline.Medium,
		title: "Any failure is a reason to terminate", why: "A single failure, however small, is listed as an event that ends the contract.",
		redline: "... in a material respect, and does not remedy it within thirty (30) days of notice.", sure: 0.65,
	},
	{
		check: "term-termination.trigger-events", when: re(`\b(?:immediate|immediately) terminat|\bimmediate termination of this agreement\b`), at: pipeline.High,
		title: "Immediate termination", why: "The contract can end at once, without notice and without time to cure.", sure: 0.75,
	},
	{
		check: "term-termination.trigger-events", when: re(`\b(?:insolven|bankrupt|assignment for the benefit of creditors|going concern)`), stands: accepts,
		title: "Insolvency is a reason to terminate", why: "The contract can end when a party fails financially.", sure: 0.75,
	},
	{
		check: "term-termination.suspension", when: re(`\b(?:obligations?|services?|performance)\b.{0,60}\bsuspended\b|\bmay suspend\b`),
		title: "Performance is suspended on any breach", why: "The other party may stop performing at once; how long is in its hands.",
		redline: "... may suspend, on ten (10) days' notice, for undisputed sums that are overdue by thirty days.", sure: 0.8,
	},
	{
		check: "term-termination.after-the-end", when: re(`\bcustomer (?:agreements?|contracts?)\b.{0,60}\b(?:transferred|assigned)\b`),
		title: "Customers are taken over at the end", why: "When the contract ends, customer contracts pass to the other party without payment.",
		redline: "Customer agreements stay with Reseller for their remaining term.", sure: 0.85,
	},
	{
		check: "term-termination.after-the-end", when: re(`\b(?:no liability|not be entitled)\b.{0,90}\b(?:terminat|expir|compensation)`),
		title: "No compensation when the contract ends", why: "Investments, goodwill and lost profit are not made good, whoever ends the contract.",
		redline: "This does not exclude compensation that mandatory law grants, or damages for wrongful termination.", sure: 0.8,
	},
	{
		check: "term-termination.after-the-end", when: re(`\bshall refer to\b.{0,60}\b(?:inquiries|orders)\b`), at: pipeline.Medium,
		title: "Inquiries must be handed over", why: "New business goes to the other party as soon as the contract ends.", sure: 0.7,
	},
	{
		check: "term-termination.after-the-end", when: re(`\bpayment prior to shipment\b|\bimmediately shall pay\b`), at: pipeline.Low,
		title: "Payment falls due at once", why: "Terms of payment end with the notice, not with the contract.", sure: 0.65,
	},
}

var assignmentRules = []rule{
	{
		check: "assignment-control.consent", when: re(`\b(?:may not|shall not|cannot|neither party (?:may|shall)|no party (?:may|shall))\b.{0,60}\bassign(?:ed|able)?\b.{0,120}\bconsent\b`), unless: re(`unreasonabl`), stands: accepts,
		title: "Assignment needs consent", why: "Consent is needed, and nothing says that it may not be refused without a reason.",
		redline: "... which shall not be unreasonably withheld or delayed.", sure: 0.85,
	},
	{
		check: "assignment-control.consent", when: re(`\bassign(?:ed|able)?\b.{0,160}\bconsent\b.{0,80}\bunreasonabl`), stands: preferred,
		title: "Assignment needs reasonable consent", why: "Consent is needed and may not be unreasonably withheld.", sure: 0.8,
	},
	{
		check: "assignment-control.affiliates", when: re(`\bWHO may assign\b.{0,100}\baffiliate`), unless: mutual, of: theirs,
		title: "Only {who} may assign in its group", why: "{who} can move the contract to an affiliate on notice; the other party cannot.",
		redline: "Either party may assign this Agreement to an Affiliate on notice and remains liable.", sure: 0.85,
	},
	{
		check: "assignment-control.consent", when: re(`\bWHO may (?:freely )?assign\b`), unless: re(`affiliate|consent|either party|neither party`), of: theirs,
		title: "{who} may assign freely", why: "{who} may hand the contract to anybody.", sure: 0.75,
	},
	{
		check: "assignment-control.change-of-control", when: re(`\bchange (?:of|in) (?:the )?(?:\w+ )?control\b|\bmerged or consolidated\b|\bchange of (?:fifty|more than fifty|a majority)\b|\bvoting (?:power|stock|securities)\b.{0,80}\b(?:change|transfer|fifty|50)`), unless: re(`"(?:affiliate|control)"`),
		title: "A change of control can end the contract", why: "A sale, merger or new management is enough; whether it harms anybody is not asked.",
		redline: "... to a competitor that is named in Exhibit __; in all other cases notice within thirty days is enough.", sure: 0.85,
	},
	{
		check: "assignment-control.change-of-control", when: re(`\bfifty percent \(50%\) or more\b`),
		title: "Change of half of the votes is enough", why: "A transaction that moves fifty percent of the votes is a reason to terminate.", sure: 0.8,
	},
	{
		check: "assignment-control.void-assignment", when: re(`\b(?:attempted |purported )?assignment\b.{0,60}\b(?:void|breach)\b`), at: pipeline.Low,
		title: "Assignment without consent is void and a breach", why: "An assignment that was not approved has no effect and puts the assignor in breach.", sure: 0.8,
	},
	{
		check: "assignment-control.subcontracting", when: re(`\b(?:approv|consent)\w*\b.*\bsole discretion\b`), unless: re(`\bassign this\b`), at: pipeline.Medium,
		title: "Approval in sole discretion", why: "The approval may be refused without a reason.",
		redline: "... which approval shall not be unreasonably withheld or delayed.", sure: 0.75,
	},
	{
		check: "assignment-control.subcontracting", when: re(`\b(?:sub-?contract|sub-?licen[sc]e|delegate)\w*\b.{0,120}\b(?:consent|approval)\b`), stands: accepts,
		title: "Subcontracting needs consent", why: "Others may be used only with consent.", sure: 0.7,
	},
	{
		check: "assignment-control.successors", when: re(`\bbinding (?:up)?on\b.{0,80}\b(?:heirs|successors)\b`), unless: re(`permitted (?:successors|assigns)`), at: pipeline.Low,
		title: "Binds all successors and assigns", why: "The words bind assigns of any kind and do not refer to the clause on assignment.",
		redline: "... permitted successors and assigns ...", sure: 0.7,
	},
	{
		check: "assignment-control.successors", when: re(`\b(?:is|are|be|as)\b.{0,40}\b(?:intended |express )?third[- ]party beneficiar`), unless: re(`\bno third|\bnot\b.{0,60}\bthird[- ]party beneficiar`), stands: accepts,
		title: "A third party may enforce the contract", why: "Somebody who is not a party is given rights under the contract.", sure: 0.75,
	},
	{
		check: "assignment-control.assignor-liability", when: re(`\bassign.{0,120}\b(?:released|relieved|discharged)\b`), unless: re(`\bnot (?:be )?(?:released|relieved)`),
		title: "The assignor is released", why: "After an assignment only the assignee can be held liable.", sure: 0.7,
	},
	{
		check: "assignment-control.key-people", when: re(`\bno (?:current )?(?:employee|shareholder|officer)s?\b.{0,80}\b(?:ownership )?interest\b`),
		title: "Promise about who owns a party", why: "The promise depends on facts about shareholders that the party cannot control.", sure: 0.7,
	},
}
