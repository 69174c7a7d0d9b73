package awsclient

import (
	"net/http"
	"testing"
	"time"
)

type dated struct{ date string }

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {d.date}}}, nil
}

func TestSkew(t *testing.T) {
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		local time.Time // when the request is sent; it takes a second
		want  time.Duration
	}{
		"the same clock":                      {noon.Add(-300 * time.Millisecond), 0},
		"the fraction of a second":            {noon.Add(900 * time.Millisecond), 0},
		"a request that was long on its way":  {noon.Add(-999 * time.Millisecond), 0},
		"ahead by seven seconds":              {noon.Add(8 * time.Second), 7 * time.Second},
		"behind by nine seconds":              {noon.Add(-10 * time.Second), -9 * time.Second},
		"ahead by ninety seconds and a tenth": {noon.Add(91*time.Second + 100*time.Millisecond), 90*time.Second + 100*time.Millisecond},
	} {
		now := c.local
		w := &watch{inner: dated{noon.Format(http.TimeFormat)}, now: func() time.Time {
			was := now
			now = now.Add(time.Second)
			return was
		}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://store", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		clients := &Clients{watch: w}
		if got := clients.Skew(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		w.inner = dated{"no date"}
		if _, err := w.RoundTrip(r); err != nil || clients.Skew() != c.want {
			t.Errorf("%s: an answer without a date changed it to %v", name, clients.Skew())
		}
	}
}
