package spec

import (
	"fmt"
	"strings"
)

// Says is a step in words, put together only when it is printed: a text in which {who}, {row}, {a}, {b} and {c} stand
// for the values.
type Says struct {
	Text    string
	Who     int8
	Row     Status
	A, B, C int8
}

func (s Says) String() string {
	return strings.NewReplacer(
		"{who}", string(rune('A'+s.Who)),
		"{row}", s.Row.String(),
		"{a}", fmt.Sprint(s.A), "{b}", fmt.Sprint(s.B), "{c}", fmt.Sprint(s.C),
	).Replace(s.Text)
}
