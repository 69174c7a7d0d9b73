package pipelinetest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/awscost"
)

// Proxy stands between an AWS client and the service, or LocalStack: it forwards requests, and does to those that a
// rule picks what a network or an unwell service does. Without rules it only counts.
type Proxy struct {
	URL string

	server *httptest.Server
	target string
	client *http.Client

	mu    sync.Mutex
	rules []*rule
	seen  map[string]int
}

// Call is one request of an AWS client.
type Call struct {
	Op   string // "UpdateItem", "SendMessageBatch"; of S3 the method and "Object" or "Bucket": "PUT Object"
	Body string
}

// Has says that the request is of that operation and contains all of the texts. An operation "" is any.
func (c Call) Has(op string, texts ...string) bool {
	for _, text := range texts {
		if !strings.Contains(c.Body, text) {
			return false
		}
	}
	return op == "" || c.Op == op
}

// Matching picks calls.
type Matching func(Call) bool

// OpCalls picks the calls of an operation whose body contains all of the texts.
func OpCalls(op string, texts ...string) Matching {
	return func(c Call) bool { return c.Has(op, texts...) }
}

// AllWrites picks every call that changes something in DynamoDB.
func AllWrites(c Call) bool {
	switch c.Op {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems":
		return true
	}
	return false
}

// answered is what came back, or what is to be said instead; nil is a connection that is cut.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// rule is what happens to calls that match, so many times.
type rule struct {
	match Matching
	left  int // -1 = always
	do    func(c Call, forward func() *answered) *answered
}

// NewProxy is a proxy before an address, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{target: target, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, seen: map[string]int{}}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = p.server.URL
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

func (p *Proxy) add(n int, match Matching, do func(c Call, forward func() *answered) *answered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{match: match, left: n, do: do})
}

// Drop forwards the next n matching calls and cuts the connection in the place of the answer.
func (p *Proxy) Drop(n int, match Matching) {
	p.add(n, match, func(_ Call, forward func() *answered) *answered {
		forward()
		return nil
	})
}

// DropFirst drops the answer to the first sending of every matching call that was made: it is sent once more, and finds
// what it has done itself. What was refused is told.
func (p *Proxy) DropFirst(match Matching) {
	var mu sync.Mutex
	before := map[string]bool{}
	p.add(-1, match, func(c Call, forward func() *answered) *answered {
		answer := forward()
		mu.Lock()
		defer mu.Unlock()
		if before[c.Body] || answer == nil || answer.status != http.StatusOK {
			delete(before, c.Body)
			return answer
		}
		before[c.Body] = true
		return nil
	})
}

// Lose cuts the connection of the next n matching calls and forwards nothing.
func (p *Proxy) Lose(n int, match Matching) {
	p.add(n, match, func(Call, func() *answered) *answered { return nil })
}

// Fail answers the next n matching calls (-1 = all) with an error of that code and forwards nothing.
func (p *Proxy) Fail(n int, match Matching, status int, code string) {
	p.add(n, match, func(Call, func() *answered) *answered { return refusal(status, code) })
}

// refusal is an answer of AWS's JSON protocols, or of S3, that says no.
func refusal(status int, code string) *answered {
	body := `{"__type":"com.amazonaws#` + code + `","message":"said by the test"}`
	return &answered{status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Query-Error": {code + ";Sender"}}, []byte(body)}
}

// FailXML is Fail for S3.
func (p *Proxy) FailXML(n int, match Matching, status int, code string) {
	p.add(n, match, func(Call, func() *answered) *answered {
		body := `<?xml version="1.0"?><Error><Code>` + code + `</Code><Message>said by the test</Message></Error>`
		return &answered{status, http.Header{"Content-Type": {"application/xml"}}, []byte(body)}
	})
}

// Answer answers the next n matching calls with that body and forwards nothing.
func (p *Proxy) Answer(n int, match Matching, status int, body []byte) {
	p.add(n, match, func(Call, func() *answered) *answered {
		return &answered{status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, body}
	})
}

// Rewrite changes the answers to the next n matching calls.
func (p *Proxy) Rewrite(n int, match Matching, body func(answer []byte) []byte) {
	p.add(n, match, func(_ Call, forward func() *answered) *answered {
		answer := forward()
		if answer != nil {
			answer.body = body(answer.body)
			answer.header.Del("X-Amz-Crc32")
		}
		return answer
	})
}

// Around lets the test stand around the next n matching calls (-1 = all): forward sends the call on.
func (p *Proxy) Around(n int, match Matching, do func(forward func()) (cut bool)) {
	p.add(n, match, func(_ Call, forward func() *answered) *answered {
		var answer *answered
		if do(func() { answer = forward() }) {
			return nil
		}
		return answer
	})
}

// Dated gives every answer that no rule picked the date that a server with another clock would give, and tells of each.
func (p *Proxy) Dated(date func(now time.Time) string, told chan<- struct{}) {
	p.add(-1, func(Call) bool { return true }, func(_ Call, forward func() *answered) *answered {
		answer := forward()
		if answer != nil {
			answer.header.Set("Date", date(time.Now()))
		}
		select {
		case told <- struct{}{}:
		default:
		}
		return answer
	})
}

// Held is a call that is held back.
type Held struct {
	Arrived chan struct{} // closed when it has come
	release chan struct{}
	done    chan struct{}
}

// Release sends the call on and waits until it has been answered; nobody learns the answer.
func (h *Held) Release() {
	close(h.release)
	<-h.done
}

// Hold holds the next matching call back, as a slow network does: its sender is cut off at once.
func (p *Proxy) Hold(match Matching) *Held {
	h := &Held{Arrived: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	p.add(1, match, func(_ Call, forward func() *answered) *answered {
		go func() {
			<-h.release
			forward()
			close(h.done)
		}()
		close(h.Arrived)
		return nil
	})
	return h
}

// Clear removes all rules.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Seen is how many calls of an operation came.
func (p *Proxy) Seen(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[op]
}

// picked is the first rule that matches and is not used up.
func (p *Proxy) picked(c Call) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[c.Op]++
	for _, r := range p.rules {
		if r.left != 0 && r.match(c) {
			if r.left > 0 {
				r.left--
			}
			return r
		}
	}
	return nil
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c := Call{Op: awscost.OpOf(r), Body: string(body)}
	forward := func() *answered { return p.forward(r, body) }
	answer := forward
	if rule := p.picked(c); rule != nil {
		answer = func() *answered { return rule.do(c, forward) }
	}
	a := answer()
	if a == nil {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// forward makes the call as it came, and outlives its sender.
func (p *Proxy) forward(r *http.Request, body []byte) *answered {
	out, err := http.NewRequest(r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil
	}
	out.Header, out.Host = r.Header.Clone(), r.Host
	resp, err := p.client.Do(out)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	return &answered{resp.StatusCode, resp.Header, answer}
}
