package split

// tokens counts as [pipeline.EstimateTokens] does, one character at a time.
type tokens struct{ letters, digits, others int }

func (t *tokens) add(c rune) {
	switch {
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == ' ' || c == '\n' || c == '\t' || c == '\r':
		t.letters++
	case c >= '0' && c <= '9':
		t.digits++
	default:
		t.others++
	}
}

func (t *tokens) sum() int { return (t.letters+5)/6 + (t.digits+2)/3 + t.others }

// tokensUpTo counts the tokens of text until there are more than limit. whole says that it came to the end.
func tokensUpTo(text string, limit int) (n int, whole bool) {
	var t tokens
	for _, c := range text {
		t.add(c)
		if t.sum() > limit {
			return t.sum(), false
		}
	}
	return t.sum(), true
}

// unitsPerToken is the scale of unitsOf.
const unitsPerToken = 6

// unitsOf is what a character adds to a length that is the same wherever the counting began, in sixths of a token.
func unitsOf(c rune) int {
	var t tokens
	t.add(c)
	return t.letters + 2*t.digits + unitsPerToken*t.others
}
