package offline

import "holdfast/pkg/pipeline"

// Rules of the analysts liability and indemnity.

var liabilityRules = []rule{
	{
		check: "liability.cap-present", when: re(`\bin no event (?:shall|will) WHO\b.*\bliable\b.*\b(?:any direct|direct, indirect|any loss|any damages? (?:of any kind|whatsoever))`), unless: mutual, of: theirs,
		title: "{who} excludes all liability, direct loss included", why: "The clause takes away every claim for damage against {who}, also for direct loss.",
		redline: "Each party's total liability under this Agreement is limited to the fees paid and payable in the twelve months before the claim, except for fraud, wilful misconduct, breach of confidentiality and indemnities.", sure: 0.9,
	},
	{
		check: "liability.cap-present", when: re(`\bWHO (?:shall|will) (?:have no|not have any) liability\b`), unless: mutual, of: theirs, at: pipeline.High,
		title: "No liability of {who} at all", why: "{who} accepts no liability for what this sentence names, whatever the cause.", sure: 0.75,
	},
	{
		check: "liability.cap-present", when: re(`\bWHO (?:shall|will) be (?:fully |solely )?liable for any\b`), unless: mutual, of: ours, at: pipeline.High,
		title: "{who} is liable without a limit", why: "{who} answers for this without a cap or a need for fault.",
		redline: "... up to the limit of liability in this Agreement, and only where caused by its own breach.", sure: 0.7,
	},
	{
		check: "liability.cap-present", when: re(`\b(?:aggregate|total|maximum|entire|cumulative|combined)\b[^.]{0,40}\bliability\b.*\b(?:exceed|limited to)\b`), stands: accepts,
		title: "Liability is capped", why: "A stated amount limits liability.", sure: 0.8,
	},
	{
		check: "liability.cap-amount", when: re(`\b(?:sole|entire|total|aggregate)\b.*\b(?:liability|obligation|remedy)\b.*\b(?:purchase price|price paid|repair|replacement)\b`),
		title: "Recovery is limited to repair or the price paid", why: "Whatever the loss, only repair, replacement or the price of the item can be had.",
		redline: "Liability is limited to the greater of 200 % of the fees of the last twelve months and the insured sum.", sure: 0.85,
	},
	{
		check: "liability.cap-amount", when: re(`\bliability\b.*\b(?:exceed|limited to)\b.*\b(?P<n>\d{1,2})\)? (?:months?|month period)\b`), below: 12,
		title: "The cap is less than a year's fees", why: "The cap is measured by {n} months only.", sure: 0.8,
	},
	{
		check: "liability.mutual", when: re(`\bin no event (?:shall|will) WHO\b.*\bliable\b`), unless: mutual, of: theirs,
		title: "The limits protect {who} only", why: "The exclusion is written for {who}; the other party has none.",
		redline: "In no event shall either party be liable to the other ...", sure: 0.85,
	},
	{
		check: "liability.consequential-loss", when: re(`\bin no event (?:shall|will) WHO\b.*\b(?:indirect|consequential|punitive|incidental)\b`), unless: mutual, of: theirs,
		title: "One-way exclusion of consequential loss", why: "Indirect and consequential loss is excluded for {who} only.",
		redline: "Neither party is liable for indirect or consequential loss; the cost of replacement and of claims by third parties is direct loss.", sure: 0.85,
	},
	{
		check: "liability.consequential-loss", when: re(`\b(?:neither|no) party\b.*\b(?:indirect|consequential|punitive|incidental)\b`), stands: accepts,
		title: "Mutual exclusion of consequential loss", why: "Both parties give up indirect loss, without a list of what stays recoverable.", sure: 0.85,
	},
	{
		check: "liability.carve-outs", when: re(`\b(?:limitations?|exclusions?|cap)\b.*\b(?:not apply|except)\b.*\b(?:negligence|misconduct|fraud|confidential|indemni)`), stands: preferred,
		title: "Carve-outs from the limits", why: "What is named here stays outside the limits.", sure: 0.75,
	},
	{
		check: "liability.carve-outs", when: re(`\bsuch damages\b.*\beven if\b.*\bpossibility\b|\beven if\b.*\badvised of the possibility\b`), at: pipeline.Low,
		title: "Exclusion holds although the loss was foreseen", why: "The exclusion applies also where the damage was known to be possible.", sure: 0.6,
	},
	{
		check: "liability.super-cap", when: re(`\bWHO'?s? entire liability\b|\bentire liability (?:of WHO )?(?:with respect to|for)\b.*\binfring`),
		title: "Infringement liability is fixed and final", why: "What is listed before is all that can be claimed for infringement; no higher cap and no damages.",
		redline: "This Section does not limit the right to damages, up to three times the general cap.", sure: 0.75,
	},
	{
		check: "liability.limitation-period", when: re(`\b(?:no (?:action|claim|suit)|any (?:action|claim|suit))\b.*\b(?:more than|later than|within)\b.{0,30}\b(?:one|two|1|2|six|6|twelve|12|eighteen|18)\b.{0,8}\b(?:years?|months?)\b.{0,20}\bafter\b`),
		title: "Short time limit for claims", why: "Claims are lost earlier than the law provides.", redline: "Claims are subject to the statutory limitation period.", sure: 0.75,
	},
	{
		check: "liability.liquidated-damages", when: re(`\bliquidated damages\b|\b(?:as|a) (?:a )?penalty\b|\bshall forfeit\b`), unless: re(`\bnot (?:as )?(?:a )?penalty\b.*\bcredit`),
		title: "Liquidated damages", why: "A sum is due without proof of loss.", redline: "... as the sole remedy, limited to 10 % of the fees concerned.", sure: 0.75,
	},
	{
		check: "liability.liquidated-damages", when: re(`\bmutually agreeable severance fee\b|\b(?:termination|severance|cancellation) (?:fee|charge)\b`), at: pipeline.Medium,
		title: "A fee without a stated amount", why: "A payment is due whose amount is not fixed, in effect a penalty.", sure: 0.6,
	},
}

var indemnityRules = []rule{
	{
		check: "indemnity.mutual", when: re(`\bWHO (?:hereby )?(?:shall|will|must|agrees to|undertakes to)\b[^.;]{0,90}\b(?:indemnify|hold .{0,60}harmless)`), unless: mutual, of: ours,
		title: "{who} indemnifies, one way", why: "{who} stands in for claims and losses; this sentence gives nothing in return.",
		redline: "Each party shall indemnify the other against claims of third parties to the extent caused by its breach, negligence or wilful misconduct.", sure: 0.85,
	},
	{
		check: "indemnity.mutual", when: re(`\beach party\b.{0,60}\bindemnify\b`), stands: preferred,
		title: "Mutual indemnity", why: "Both parties indemnify each other.", sure: 0.85,
	},
	{
		check: "indemnity.triggers", when: re(`\bindemnif.*\b(?:any )?acts? or omissions? of\b`), of: ours,
		title: "Indemnity for any act or omission", why: "The duty does not depend on breach or fault.",
		redline: "... resulting from the negligent or unlawful acts of ...", sure: 0.85,
	},
	{
		check: "indemnity.triggers", when: re(`\bindemnif.*\b(?:resulting|arising|related|relating)\b.*\b(?:installation|use) (?:of|by)\b`), unless: re(`\bfails to\b`), at: pipeline.High,
		title: "Indemnity for what others install or use", why: "The duty covers events that the indemnifying party does not control.", sure: 0.7,
	},
	{
		check: "indemnity.scope-of-loss", when: re(`\bindemnif.*\b(?:indirect|incidental|special|punitive|consequential)\b`),
		title: "Indemnity covers indirect and punitive loss", why: "The losses covered go far beyond what a court would award.",
		redline: "... damages finally awarded or agreed in settlement, and reasonable costs of defence ...", sure: 0.85,
	},
	{
		check: "indemnity.scope-of-loss", when: re(`\bindemnif.*\bany and all (?:claims|losses|liabilit|damages|suits)`), at: pipeline.Medium,
		title: "Indemnity for any and all claims", why: "Every kind of claim and cost is covered, without a limit to reasonable amounts.",
		redline: "... damages finally awarded or agreed in settlement, and reasonable costs of defence ...", sure: 0.75,
	},
	{
		check: "indemnity.fault-carve-out", when: re(`\b(?:unless|except)\b.{0,60}\bgross negligence\b`),
		title: "Own negligence is covered by the indemnity", why: "Only gross negligence or wilful misconduct of the indemnified party lifts the duty; its ordinary negligence does not.",
		redline: "... except to the extent caused by the negligence or misconduct of the indemnified party.", sure: 0.8,
	},
	{
		check: "indemnity.procedure", when: re(`\bno obligation\b.*\bunless\b.*\b(?:notified|notice|control)\b|\b(?:complete|sole|exclusive) control of the defen[sc]e\b`),
		title: "Defence is lost with late notice or shared control", why: "The duty to defend falls away unless notice is prompt and all control is handed over.",
		redline: "Late notice relieves the indemnifying party only to the extent that it was prejudiced.", sure: 0.8,
	},
	{
		check: "indemnity.ip-infringement", when: re(`\bWHO (?:shall|will) (?:defend|indemnify)\b.*\binfring`), of: theirs, stands: accepts,
		title: "{who} defends against infringement claims", why: "{who} takes over the defence and pays costs and damages for the rights that are named.", sure: 0.8,
	},
	{
		check: "indemnity.ip-infringement", when: re(`\b(?:repurchase|refund)\b.*\bdepreciat`),
		title: "Refund on a depreciated basis only", why: "When the product must be given up for infringement, only a depreciated price is paid back.",
		redline: "... refund the price paid, and the cost of replacement up to the cap.", sure: 0.85,
	},
	{
		check: "indemnity.taxes-and-third-parties", when: re(`\bindemnif.*\btax`),
		title: "Indemnity for all taxes and charges", why: "The duty covers taxes and charges of every kind, also those that are the other party's own.",
		redline: "... other than taxes on the other party's income, property or employees.", sure: 0.8,
	},
	{
		check: "indemnity.taxes-and-third-parties", when: re(`\bWHO (?:shall|will) be (?:solely )?(?:responsible|liable) for\b.{0,80}\b(?:all (?:actions|acts)|any (?:other )?(?:resellers?|sub-?distributors?|customers?)|(?:un)?authorized)`), of: ours,
		title: "{who} answers for all acts of others", why: "{who} bears what sub-distributors or customers do, whether or not it could prevent it.", sure: 0.75,
	},
	{
		check: "indemnity.limits", when: re(`\bindemnif.*\b(?:or thereafter|after (?:the )?(?:termination|expiration)|surviv)`), at: pipeline.Medium,
		title: "The indemnity outlives the contract", why: "The duty goes on after the end, without a limit in time or amount.",
		redline: "The duty ends two years after termination and is subject to the limit of liability.", sure: 0.7,
	},
	{
		check: "indemnity.limits", when: re(`\bfails to indemnify\b`), at: pipeline.Medium,
		title: "Failure to indemnify ends the contract", why: "A dispute about the indemnity is enough to terminate.", sure: 0.7,
	},
}
