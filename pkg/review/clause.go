package review

import (
	"regexp"
	"strings"

	"holdfast/pkg/pipeline"
)

// label is a section's name or number at the start of a line, or inside of one after a sentence or a wide gap, before a
// word with a capital.
var label = regexp.MustCompile(`(?m)(?:^[ \t#*]*|[.;:)"\x{201d}]\s+|\s{2,})` +
	`((?:ARTICLE|Article|SECTION|Section|CLAUSE|Clause|EXHIBIT|Exhibit|SCHEDULE|Schedule|ANNEX|Annex|APPENDIX|Appendix)[ \t]+[0-9A-Z][0-9A-Z.]*` +
	`|[0-9]{1,3}(?:\.[0-9]{1,3})+|[0-9]{1,3}[.)])[.:)]?(?:\s+["\x{201c}(\[]?\p{Lu}|[ \t]*$)`)

// cited are words before a label that is cited there and begins nothing.
var cited = regexp.MustCompile(`(?i)\b(?:sections?|clauses?|articles?|paragraphs?|exhibit|schedule|annex|appendix|of|in|to|under|by|with|and|or|the|this|see)\s*$`)

// maxClause bounds a clause's label with its title, in bytes.
const maxClause = 80

// clauseAt is the number or heading of the clause that the place at stands in: the nearest before it in the chunk, else
// the heading that the chunk stands under.
func clauseAt(text string, c pipeline.Chunk, at int) string {
	begin := min(c.Start, at)
	if at < c.Start {
		begin = c.Context
	}
	seen := text[begin:min(len(text), at+maxClause)]
	found := ""
	for _, m := range label.FindAllStringSubmatchIndex(seen, -1) {
		if begin+m[2] > at || cited.MatchString(seen[:m[2]]) {
			continue
		}
		found = strings.TrimSpace(strings.TrimRight(seen[m[2]:m[3]], ".)") + " " + titleOf(text[begin+m[3]:min(len(text), begin+m[3]+2*maxClause)]))
	}
	if found != "" {
		return pipeline.Cut(found, maxClause)
	}
	parts := strings.Split(c.Heading, " / ")
	return parts[len(parts)-1]
}

// titleOf is what follows a label, if it is short enough to be its title and not the clause itself.
func titleOf(text string) string {
	text = strings.TrimLeft(text, ".:) \t")
	end := strings.IndexAny(text, ".:\n")
	if end < 0 || end > maxClause-20 {
		return ""
	}
	return strings.TrimSpace(text[:end])
}
