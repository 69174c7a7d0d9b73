package alarmtest

import (
	"fmt"
	"regexp"
	"strconv"
)

// series is the values of windows, of which 0 is the last; windows without a value are missing.
type series map[int]float64

// evaluate computes an expression of metric math: numbers, metrics, + - * /, comparisons, AND, OR, IF, FILL and DIFF,
// with the precedence that they have there. Where a window is missing on one side it is missing in the result.
//
// FILL of a metric that has no value in any window fills nothing: whether CloudWatch does is not documented, and an
// alarm that needs it to would be one that nobody can rely on.
func evaluate(expression string, of map[string]series, windows int) (series, error) {
	p := &parser{of: of, windows: windows}
	rest := expression
	for rest != "" {
		at := token.FindStringSubmatchIndex(rest)
		if at == nil || at[0] != 0 {
			return nil, fmt.Errorf("%q is not understood at %q", expression, rest)
		}
		if at[2] >= 0 {
			p.tokens = append(p.tokens, rest[at[2]:at[3]])
		}
		rest = rest[at[1]:]
	}
	result := p.level(0)
	if p.err == nil && len(p.tokens) > 0 {
		p.fail("%q is left over", p.tokens[0])
	}
	if p.err != nil {
		return nil, fmt.Errorf("%q: %w", expression, p.err)
	}
	return result, nil
}

var token = regexp.MustCompile(`^(?:\s+|([A-Za-z_][A-Za-z0-9_]*|[0-9.]+|>=|<=|==|!=|[-+*/<>(),]))`)

// levels are the operators, those that bind least first.
var levels = []map[string]func(a, b float64) float64{
	{"OR": func(a, b float64) float64 { return truth(a != 0 || b != 0) }},
	{"AND": func(a, b float64) float64 { return truth(a != 0 && b != 0) }},
	{
		">": func(a, b float64) float64 { return truth(a > b) }, "<": func(a, b float64) float64 { return truth(a < b) },
		">=": func(a, b float64) float64 { return truth(a >= b) }, "<=": func(a, b float64) float64 { return truth(a <= b) },
		"==": func(a, b float64) float64 { return truth(a == b) }, "!=": func(a, b float64) float64 { return truth(a != b) },
	},
	{"+": func(a, b float64) float64 { return a + b }, "-": func(a, b float64) float64 { return a - b }},
	{"*": func(a, b float64) float64 { return a * b }, "/": func(a, b float64) float64 { return a / b }},
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

type parser struct {
	tokens  []string
	of      map[string]series
	windows int
	err     error
}

func (p *parser) fail(format string, args ...any) series {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.tokens = nil
	return series{}
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		p.fail("it ends too early")
		return ""
	}
	first := p.tokens[0]
	p.tokens = p.tokens[1:]
	return first
}

func (p *parser) expect(token string) {
	if got := p.next(); p.err == nil && got != token {
		p.fail("got %q, want %q", got, token)
	}
}

// level reads operators that bind as much as this level, or more.
func (p *parser) level(n int) series {
	if n == len(levels) {
		return p.value()
	}
	left := p.level(n + 1)
	for len(p.tokens) > 0 {
		do, is := levels[n][p.tokens[0]]
		if !is {
			break
		}
		p.next()
		right := p.level(n + 1)
		both := series{}
		for window, a := range left {
			if b, has := right[window]; has {
				both[window] = do(a, b)
			}
		}
		left = both
	}
	return left
}

// value reads a number, a metric, a function or what is in brackets.
func (p *parser) value() series {
	word := p.next()
	if number, err := strconv.ParseFloat(word, 64); err == nil {
		return p.everywhere(number)
	}
	switch word {
	case "":
		return series{}
	case "(":
		inner := p.level(0)
		p.expect(")")
		return inner
	case "IF":
		args := p.arguments(3)
		return choose(args[0], args[1], args[2])
	case "FILL":
		args := p.arguments(2)
		return fill(args[0], args[1])
	case "DIFF":
		return difference(p.arguments(1)[0], p.windows)
	}
	metric, is := p.of[word]
	if !is {
		return p.fail("%q is no metric of the alarm and no function that is known here", word)
	}
	return metric
}

func (p *parser) everywhere(number float64) series {
	all := series{}
	for window := range p.windows {
		all[window] = number
	}
	return all
}

func (p *parser) arguments(n int) []series {
	args := make([]series, n)
	p.expect("(")
	for i := range args {
		if i > 0 {
			p.expect(",")
		}
		args[i] = p.level(0)
	}
	p.expect(")")
	return args
}

func choose(condition, then, otherwise series) series {
	chosen := series{}
	for window, is := range condition {
		from := otherwise
		if is != 0 {
			from = then
		}
		if value, has := from[window]; has {
			chosen[window] = value
		}
	}
	return chosen
}

func fill(s, with series) series {
	if len(s) == 0 {
		return s
	}
	filled := series{}
	for window, value := range with {
		filled[window] = value
	}
	for window, value := range s {
		filled[window] = value
	}
	return filled
}

// difference is each value less the one before it.
func difference(s series, windows int) series {
	found := series{}
	for window := range windows {
		for earlier := window + 1; earlier < windows; earlier++ {
			if value, has := s[earlier]; has {
				if now, is := s[window]; is {
					found[window] = now - value
				}
				break
			}
		}
	}
	return found
}
