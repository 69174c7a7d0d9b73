package docx

import (
	"strconv"
	"strings"
)

// Bounds of labels, so that a list cannot make more text than there is.
const (
	maxLabel   = 80   // bytes
	maxRoman   = 3999 // the last number that has a Roman numeral
	maxRepeats = 10   // of a letter: after z comes aa, then bb, ..., aaa
	maxPadding = 2    // digits of a number with leading zeros
)

// ordinal is a number of a list in one of Word's formats. What is not known is written in digits.
func ordinal(n int, format string) string {
	switch format {
	case "none":
		return ""
	case "bullet":
		return "•"
	case "decimalZero":
		digits := strconv.Itoa(n)
		return strings.Repeat("0", max(0, maxPadding-len(digits))) + digits
	case "upperRoman":
		return roman(n)
	case "lowerRoman":
		return strings.ToLower(roman(n))
	case "upperLetter":
		return letters(n, 'A')
	case "lowerLetter":
		return letters(n, 'a')
	case "ordinal":
		return strconv.Itoa(n) + suffix(n)
	}
	return strconv.Itoa(n)
}

func roman(n int) string {
	if n < 1 || n > maxRoman {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, r := range []struct {
		value int
		sign  string
	}{
		{1000, "M"},
		{900, "CM"},
		{500, "D"},
		{400, "CD"},
		{100, "C"},
		{90, "XC"},
		{50, "L"},
		{40, "XL"},
		{10, "X"},
		{9, "IX"},
		{5, "V"},
		{4, "IV"},
		{1, "I"},
	} {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.sign)
		}
	}
	return b.String()
}

func letters(n int, first byte) string {
	if n < 1 || n > 26*maxRepeats {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(first+byte((n-1)%26)), (n-1)/26+1)
}

func suffix(n int) string {
	if n%100 >= 11 && n%100 <= 13 {
		return "th"
	}
	switch n % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}
