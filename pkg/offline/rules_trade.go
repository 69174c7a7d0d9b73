package offline

import "holdfast/pkg/pipeline"

// Rules of the analysts commercial-payment and warranty-sla.

var paymentRules = []rule{
	{
		check: "commercial-payment.price-increase", when: re(`\b(?:change|increase|adjust|modify|revise) (?:the |its |any )?(?:fees?|prices?|rates?|charges)\b.*\b(?:sole discretion|at any time|from time to time)\b|\b(?:at any time|from time to time)\b.{0,60}\b(?:change|increase|adjust) (?:the |its )?(?:fees?|prices?|rates?)\b`), unless: mutual,
		title: "Prices can be changed at will", why: "Prices may be changed at any time and by any amount.",
		redline: "Fees are fixed for the first term; after it they may rise once a year, by the consumer price index at most, on ninety (90) days' notice.", sure: 0.9,
	},
	{
		check: "commercial-payment.price-increase", when: re(`\bWHO may change the fees\b|\bprices? (?:is|are) subject to change\b`), of: theirs, at: pipeline.High,
		title: "Prices in the supplier's discretion", why: "The supplier sets new prices alone.", sure: 0.8,
	},
	{
		check: "commercial-payment.minimum-commitment", when: re(`\b(?:quotas?|minimum (?:purchase|order|annual|sales|volume|commitment)\w*)\b.*\b(?:terminat|essential element)|\bfails? to (?:reach|meet|achieve) the (?:quotas?|minimum)|\bfailure to (?:reach|meet) the (?:quotas?|minimum)`),
		title: "Missed quotas end the contract", why: "A target that is missed, or that the other party expects to be missed, is a reason to terminate.",
		redline: "If the targets are missed in two consecutive years, the sole remedy is loss of exclusivity.", sure: 0.85,
	},
	{
		check: "commercial-payment.minimum-commitment", when: re(`\bminimum (?:purchase|order|annual|volume|monthly|quarterly)\w*\b.{0,40}\b(?:commitment|quantit|amount|fee|payment|of)`), unless: re(`terminat`), at: pipeline.Medium,
		title: "Minimum commitment", why: "A minimum must be bought or paid, whether or not it is needed.", sure: 0.7,
	},
	{
		check: "commercial-payment.payment-time", when: re(`\b(?:pay|paid|payable|payment)\b.{0,80}\bwithin (?:[a-z-]+ )?\(?(?P<n>\d{1,3})\)? (?:calendar |business )?days\b.{0,60}\binvoice`), below: 30,
		title: "Payment within {n} days", why: "Invoices are due {n} days after their date.",
		redline: "... within thirty (30) days of receipt of a proper invoice.", sure: 0.9,
	},
	{
		check: "commercial-payment.payment-time", when: re(`\b(?:pay|paid|payable|payment)\b.{0,80}\bwithin (?:[a-z-]+ )?\(?(?P<n>\d{1,3})\)? (?:calendar |business )?days\b.{0,60}\binvoice`), above: 29, stands: accepts,
		title: "Payment within {n} days", why: "Invoices are due {n} days after their date.", sure: 0.85,
	},
	{
		check: "commercial-payment.late-interest", when: re(`\binterest\b.{0,80}?\b(?P<n>\d{1,2}(?:\.\d+)?) ?%\)? (?:per|a) month`), above: 1,
		title: "Interest of {n} % a month", why: "Late payment costs {n} % a month, which is far above statutory rates.",
		redline: "... at the statutory rate, after a reminder.", sure: 0.9,
	},
	{
		check: "commercial-payment.late-interest", when: re(`\b(?:late|past due|overdue)\b.{0,80}\b(?:interest|charge|fee)\b.{0,60}%`), at: pipeline.Low,
		title: "Charge for late payment", why: "Late payment bears interest or a charge.", sure: 0.6,
	},
	{
		check: "commercial-payment.taxes", when: re(`\bWHO (?:shall|will) (?:pay|be responsible for|bear)\b.{0,100}\b(?:taxes|duties|assessments)\b`), of: ours,
		title: "{who} bears all taxes and duties", why: "Taxes and duties of every kind are shifted to {who}.",
		redline: "... other than taxes on the other party's income.", sure: 0.8,
	},
	{
		check: "commercial-payment.taxes", when: re(`\bfailure\b.{0,80}\bto pay such (?:assessment|tax)\b`), at: pipeline.High,
		title: "Unpaid taxes end the contract", why: "Failure to pay a tax at once may end the contract.", sure: 0.75,
	},
	{
		check: "commercial-payment.disputed-sums", when: re(`\breserves the right to (?:reject|cancel) any order\b|\breject any order\b|\bwithout (?:any )?(?:deduction|set-?off)\b`),
		title: "Orders can be refused for any reason", why: "An order may be rejected, or cancelled after it was accepted, or sums may not be withheld.",
		redline: "... may reject an order only for good cause, within five (5) days.", sure: 0.8,
	},
	{
		check: "commercial-payment.most-favoured", when: re(`\bmost[- ]favou?red\b|\b(?:no|not) less favou?rable\b.{0,40}\b(?:price|terms|fees)|\blowest price\b`),
		title: "Most-favoured terms", why: "Prices or terms are tied to those of others.", sure: 0.7,
	},
	{
		check: "commercial-payment.most-favoured", when: re(`\b(?:minimum|maximum|suggested) (?:resale|retail) price`), at: pipeline.High,
		title: "Resale prices are restricted", why: "Limits on resale prices may also be unlawful.", sure: 0.75,
	},
	{
		check: "commercial-payment.expenses", when: re(`\breimburse\b.{0,80}\b(?:all|any)\b.{0,60}\b(?:costs|expenses)\b|\bexpenses\b.{0,80}\bborne by\b`),
		title: "Expenses without a limit", why: "Costs are charged on top of the fees, without approval or a limit.",
		redline: "... reasonable expenses that were approved in writing in advance.", sure: 0.75,
	},
	{
		check: "commercial-payment.expenses", when: re(`\bcharge to WHO the cost\b|\bmay also charge\b`), at: pipeline.Low,
		title: "Extra charges", why: "Costs are passed on besides the fees.", sure: 0.65,
	},
}

var warrantyRules = []rule{
	{
		check: "warranty-sla.performance-warranty", when: re(`\bWHO (?:represents and )?warrants (?:that|to)\b`), of: theirs, stands: accepts,
		title: "{who} gives a limited warranty", why: "What is listed here is warranted.", sure: 0.75,
	},
	{
		check: "warranty-sla.performance-warranty", when: re(`\b(?:does|do) not (?:represent or )?warrant\b`),
		title: "No warranty that the product works", why: "Beyond what is listed, nothing is warranted.",
		redline: "... warrants that the software conforms to its documentation for the term of this Agreement.", sure: 0.75,
	},
	{
		check: "warranty-sla.disclaimer", when: re(`\bmakes? no (?:other )?(?:representation|warrant)|\bdisclaims? (?:all|any)\b|"as is"|\bas-is\b|\bno (?:other )?warranties\b`),
		title: "All other warranties are disclaimed", why: "The disclaimer reaches everything that is not listed, express statements included.",
		redline: "... disclaims implied warranties; statements in the documentation remain binding.", sure: 0.8,
	},
	{
		check: "warranty-sla.warranty-period", when: re(`\bwarrant.{0,400}\bperiod of [a-z-]+ \((?P<n>\d{1,3})\) days\b`), below: 365,
		title: "Warranty of {n} days only", why: "Defects that show after {n} days are not covered.",
		redline: "... for twelve (12) months after delivery ...", sure: 0.9,
	},
	{
		check: "warranty-sla.remedy", when: re(`\bsole (?:and exclusive )?(?:obligation|remedy)\b|\bexclusive remed`),
		title: "Sole remedy at the supplier's choice", why: "Only the listed remedies are left, and the supplier chooses between them.",
		redline: "If repair or replacement fails within thirty (30) days, the price is refunded; damages up to the cap are not affected.", sure: 0.85,
	},
	{
		check: "warranty-sla.service-level", when: re(`\breasonable (?:commercial )?efforts\b.{0,100}\b(?:maintain|availab|install|support services)|\bcommercially reasonable efforts\b.{0,100}\b(?:maintain|availab|install|support services)`),
		title: "Reasonable efforts instead of service levels", why: "No number is promised for availability or time, so nothing can be measured.",
		redline: "... availability of 99.5 % a month, with the response times and credits in Exhibit __.", sure: 0.75,
	},
	{
		check: "warranty-sla.service-level", when: re(`\b(?P<n>9\d(?:\.\d+)?) ?%.{0,60}\b(?:uptime|availab)|\b(?:uptime|availab)\w*.{0,60}\b(?P<n2>9\d(?:\.\d+)?) ?%`), stands: preferred,
		title: "Availability is promised in numbers", why: "A service level is stated.", sure: 0.8,
	},
	{
		check: "warranty-sla.service-level", when: re(`\bnot (?:be )?(?:responsible|liable) for any delays?\b`), at: pipeline.Low,
		title: "No responsibility for delay", why: "Delay is excused, for the causes that are listed.", sure: 0.65,
	},
	{
		check: "warranty-sla.service-level", when: re(`\bnothing\b.{0,60}\bobligate WHO to provide\b`), of: theirs, at: pipeline.Medium,
		title: "No duty to help at all", why: "The sentence takes back the assistance that was promised before.",
		redline: "Delete.", sure: 0.8,
	},
	{
		check: "warranty-sla.our-warranties", when: re(`\bWHO\W+(?:\(a\) )?represents and warrants\b`), of: ours,
		title: "{who} warrants, one way", why: "{who} warrants facts without a limit to its knowledge; the other party does not.",
		redline: "Each party represents and warrants that it is duly organised and has authority to enter into this Agreement.", sure: 0.75,
	},
	{
		check: "warranty-sla.to-customers", when: re(`\b(?:shall not|not authorized to|may not)\b.{0,60}\bmake any (?:representations? or )?warrant`),
		title: "No warranties to customers", why: "Nothing may be promised to customers, although they will hold the seller liable.",
		redline: "Reseller may pass the warranty in this Agreement on to its customers.", sure: 0.75,
	},
	{
		check: "warranty-sla.to-customers", when: re(`\bWHO bears? sole responsibility\b`), of: ours,
		title: "{who} alone answers for lawful use", why: "{who} must judge whether customers may use the product, although the supplier knows it best.", sure: 0.8,
	},
	{
		check: "warranty-sla.product-change", when: re(`\bdiscontinue\b.{0,160}\bwithout\b.{0,20}\bnotice\b|\bright\b.{0,80}\bsole discretion\b.{0,40}\bto change\b|\b(?:change|modify|discontinue)\b.{0,40}\b(?:software|services?|products?)\b.{0,100}\b(?:sole discretion|without (?:prior )?notice)`),
		title: "The product can be changed or dropped", why: "Product and services may be changed or discontinued without notice; customers stay with the seller.",
		redline: "... on twelve (12) months' notice; current orders and support are not affected.", sure: 0.85,
	},
}
