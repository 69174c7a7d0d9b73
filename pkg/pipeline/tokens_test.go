package pipeline

import (
	"strings"
	"testing"
)

// tokensByCharacter is the estimate as it is defined, character by character.
func tokensByCharacter(text string) int {
	var letters, digits, others int
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune(" \n\t\r", c):
			letters++
		case c >= '0' && c <= '9':
			digits++
		default:
			others++
		}
	}
	return (letters+5)/6 + (digits+2)/3 + others
}

func FuzzTokensAreCountedByCharacter(f *testing.F) {
	for _, text := range []string{
		"", "a", "The cap is 1,000.", "§ 12 — „Haftung“", "\xff\xfe broken \xe2\x82", "\x00\x7f",
		strings.Repeat("a", countRoom), strings.Repeat("1", countRoom+1), strings.Repeat("§a1.", countRoom), strings.Repeat(".", 2*countRoom+7),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := EstimateTokens(text), tokensByCharacter(text); got != want {
			t.Errorf("%d bytes: got %d tokens, want %d", len(text), got, want)
		}
	})
}
