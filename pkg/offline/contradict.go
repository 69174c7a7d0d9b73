package offline

import (
	"fmt"
	"regexp"
	"strings"

	"holdfast/pkg/pipeline"
)

var (
	spelled = regexp.MustCompile(`(?i)\b((?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|eighteen) \((\d{1,3})\)`)
	figures = map[string]int{
		"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
		"eleven": 11, "twelve": 12, "fifteen": 15, "eighteen": 18, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
		"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}
)

// wordsAndFigures finds numbers whose words and figures differ: thirty (60) days.
func (t *text) wordsAndFigures() []finding {
	var all []finding
	for _, m := range spelled.FindAllStringSubmatchIndex(t.plain, -1) {
		said := 0
		for _, w := range strings.FieldsFunc(strings.ToLower(t.group(m, 1)), func(r rune) bool { return r == '-' || r == ' ' }) {
			said += figures[w]
		}
		if before := strings.ToLower(t.plain[max(0, m[0]-12):m[0]]); strings.HasSuffix(before, "hundred ") ||
			strings.HasSuffix(before, "and ") || strings.HasSuffix(before, "-") {
			continue // the end of a longer number
		}
		if figure := atoi(t.group(m, 2)); figure != said {
			all = append(all, t.point(span{m[0], m[1]}, pipeline.High, fmt.Sprintf("Words say %d, figures say %d", said, figure),
				"The number in words and the one in figures differ; which holds is open.", "Make words and figures agree.", 0.9))
		}
	}
	return all
}

var invoiceDays = re(`\bwithin [a-z-]+ \((?P<n>\d{1,3})\) days (?:of|after|from) (?:the )?(?:date of (?:the )?|receipt of (?:the )?)?invoice`)

// differingPeriods finds two periods for the payment of invoices.
func (t *text) differingPeriods() []finding {
	first := ""
	for _, m := range invoiceDays.FindAllStringSubmatchIndex(t.plain, -1) {
		n := t.group(m, invoiceDays.SubexpIndex("n"))
		if first == "" {
			first = n
		}
		if n != first {
			return []finding{t.point(span{m[0], m[1]}, pipeline.Medium, fmt.Sprintf("Payment in %s days here and %s days before", n, first),
				"Two clauses of this part give different times for the payment of invoices.", "Keep one period.", 0.75)}
		}
	}
	return nil
}

var (
	notExclusive = re(`\bnon-?exclusive\b.{0,40}\b(?:distributor|reseller|agent|licensee)\b`)
	isExclusive  = re(`\b(?:its|the|an|sole and) exclusive\b.{0,30}\b(?:distributor|reseller|agent|licensee)\b`)
)

// exclusiveOrNot finds an appointment that is exclusive in one place and not in another.
func (t *text) exclusiveOrNot() []finding {
	open, bound := notExclusive.FindStringIndex(t.plain), isExclusive.FindStringIndex(t.plain)
	if open == nil || bound == nil {
		return nil
	}
	later := span{max(open[0], bound[0]), max(open[1], bound[1])}
	return []finding{t.point(later, pipeline.High, "Exclusive in one place, not in another",
		"The appointment is called exclusive and non-exclusive in this part.", "Decide which, and say it once.", 0.7)}
}
