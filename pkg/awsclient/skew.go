package awsclient

import (
	"net/http"
	"sync"
	"time"
)

// watch is a transport that learns from the store's answers how far this machine's clock is from the store's: whoever
// differs too much must neither claim nor expire.
type watch struct {
	inner http.RoundTripper
	now   func() time.Time

	mu   sync.Mutex
	skew time.Duration
}

// RoundTrip makes the request and looks at the date of its answer.
func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := w.now()
	resp, err := w.inner.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if date, dateErr := http.ParseTime(resp.Header.Get("Date")); dateErr == nil {
		w.learn(between(sent, w.now(), date))
	}
	return resp, nil
}

// between is by how much this clock is certainly ahead of the store's (behind, if negative), given when a request was
// sent, when its answer had come, and the second in which the store answered. What the time on the way or the fraction
// of the second may explain is no difference.
func between(sent, came, date time.Time) time.Duration {
	if ahead := sent.Sub(date.Add(time.Second)); ahead > 0 {
		return ahead
	}
	if behind := came.Sub(date); behind < 0 {
		return behind
	}
	return 0
}

func (w *watch) learn(skew time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skew = skew
}

// Skew is by how much this machine's clock is ahead of the store's, as its last answer told.
func (c *Clients) Skew() time.Duration {
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	return c.watch.skew
}
