package pipeline

import (
	"fmt"
	"time"
)

// Instant is a point in time in milliseconds since 1970 (UTC): what every row stores. Zero means "not set".
type Instant int64

// At is the instant of t, cut to the millisecond.
func At(t time.Time) Instant { return Instant(t.UnixMilli()) }

// Add is the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Millisecond) }

// Sub is the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i-j) * time.Millisecond }

// Time is i in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// String is for people: RFC 3339 with milliseconds, "-" when not set.
func (i Instant) String() string {
	if i == 0 {
		return "-"
	}
	return i.Time().Format("2006-01-02T15:04:05.000Z")
}

// Money is an amount in billionths of a US dollar, so that the price of one token is a whole number.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000_000

// String is for people: dollars and cents, with more digits where the amount is small.
func (m Money) String() string {
	dollars := float64(m) / float64(Dollar)
	switch {
	case m == 0:
		return "$0"
	case m < Dollar/100 && m > -Dollar/100:
		return fmt.Sprintf("$%.6f", dollars)
	default:
		return fmt.Sprintf("$%.2f", dollars)
	}
}

// Price is what a model costs per token.
type Price struct {
	Input  Money `json:"input"`  // per input token
	Output Money `json:"output"` // per output token
}

// Of is the price of a number of tokens.
func (p Price) Of(input, output int) Money { return p.Input*Money(input) + p.Output*Money(output) }
