package offline

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is a regular expression that is tried only on sentences that can match: those with one of the literals that
// every match has.
type pattern struct {
	*regexp.Regexp
	literals []string // in lower case; any of them; none if nothing is known
}

func newPattern(expression string) pattern {
	p := pattern{Regexp: regexp.MustCompile(expression)}
	if tree, err := syntax.Parse(expression, syntax.Perl); err == nil {
		p.literals = literalsOf(tree)
	}
	return p
}

// possible says that the text, in lower case, may match.
func (p pattern) possible(lower string) bool {
	for _, l := range p.literals {
		if strings.Contains(lower, l) {
			return true
		}
	}
	return len(p.literals) == 0
}

// literalsOf is a set of literals of which every match has at least one; nil if there is no such set.
func literalsOf(tree *syntax.Regexp) []string {
	switch tree.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(tree.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literalsOf(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return literalsOf(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range tree.Sub {
			if found := literalsOf(sub); rarer(found, best) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range tree.Sub {
			found := literalsOf(sub)
			if found == nil {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

// rarer says that a's shortest literal is longer than b's.
func rarer(a, b []string) bool { return shortest(a) > shortest(b) }

func shortest(list []string) int {
	if len(list) == 0 {
		return 0
	}
	n := len(list[0])
	for _, l := range list {
		n = min(n, len(l))
	}
	return n
}
