// Package awscost counts what AWS would charge for requests: DynamoDB's units by its rounding rules, requests of SQS and
// S3, and what they come to in dollars.
//
// It may decide what a request costs, and what a count is called. It may not change a request or an answer, and it knows
// no adapter: it stands between a client and the network.
package awscost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Meter is a transport that counts what AWS would charge for: requests, and DynamoDB's write and read units by its
// rounding rules. A write unit is a kilobyte of the row, a read unit four; transactions cost twice, a refused condition
// as much as the write, and moving a row in an index two writes of its own.
type Meter struct {
	Delay time.Duration // added to each request, as a network adds it

	mu     sync.Mutex
	counts map[string]*Count
	inner  http.RoundTripper
}

// Count is what was counted of one operation.
type Count struct {
	Requests int
	Writes   float64 // units
	Reads    float64 // units
}

// Around makes it stand before a transport.
func (m *Meter) Around(inner http.RoundTripper) http.RoundTripper {
	m.inner = inner
	return m
}

// RoundTrip counts a request and its answer.
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if m.Delay > 0 {
		time.Sleep(m.Delay)
	}
	resp, err := m.inner.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	op := OpOf(r)
	var answer []byte
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
		if answer, err = io.ReadAll(resp.Body); err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(answer))
	}
	c := unitsOf(op, body, answer)
	op += kindOf(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]*Count{}
	}
	if m.counts[op] == nil {
		m.counts[op] = &Count{}
	}
	m.counts[op].add(c)
	return resp, nil
}

// OpOf names what a request asks for: an operation of DynamoDB or SQS, or "PUT Object".
func OpOf(r *http.Request) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndex(target, ".")+1:]
	}
	if strings.Count(strings.Trim(r.URL.Path, "/"), "/") > 0 {
		return r.Method + " Object"
	}
	return r.Method + " Bucket"
}

// kindOf is what a request for one row is about: the beginning of its sort key.
func kindOf(body []byte) string {
	var in request
	if json.Unmarshal(body, &in) != nil {
		return ""
	}
	for _, row := range []map[string]value{in.Key, in.Item} {
		if sort, is := row["sk"]["S"].(string); is {
			parts := strings.Split(sort, "#")
			if len(parts) > 3 { // an item beside the rows: task#work#00007#stage#...
				return " " + parts[0] + "#.#" + parts[len(parts)-2]
			}
			return " " + parts[0]
		}
	}
	return ""
}

func (c *Count) add(other Count) {
	c.Requests += other.Requests
	c.Writes += other.Writes
	c.Reads += other.Reads
}

// Total is the sum over all operations.
func (m *Meter) Total() Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum Count
	for _, c := range m.counts {
		sum.add(*c)
	}
	return sum
}

// Of is what was counted of operations.
func (m *Meter) Of(ops ...string) Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum Count
	for _, op := range ops {
		if c := m.counts[op]; c != nil {
			sum.add(*c)
		}
	}
	return sum
}

// Prices per million, us-east-1, 2026-11 (aws.amazon.com/dynamodb/pricing/on-demand, /sqs/pricing, /s3/pricing).
const (
	priceWrites = 0.625
	priceReads  = 0.125
	priceQueue  = 0.40
	pricePut    = 5.00
	priceGet    = 0.40
)

// Price is what it all cost, in dollars.
func (m *Meter) Price() float64 {
	sum := m.Total()
	queue := m.Of("SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch", "GetQueueAttributes", "GetQueueUrl")
	puts, gets := m.Of("PUT Object"), m.Of("GET Object")
	return (sum.Writes*priceWrites + sum.Reads*priceReads + float64(queue.Requests)*priceQueue +
		float64(puts.Requests)*pricePut + float64(gets.Requests)*priceGet) / 1e6
}

// Lines are the counts per hundred calls, dearest first.
func (m *Meter) Lines(calls int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	per := 100 / float64(calls)
	var ops []string
	for op := range m.counts {
		ops = append(ops, op)
	}
	slices.SortFunc(ops, func(a, b string) int { return m.counts[b].Requests - m.counts[a].Requests })
	var lines []string
	for _, op := range ops {
		c := m.counts[op]
		lines = append(lines, fmt.Sprintf("%-28s %7.1f requests %7.1f write units %7.1f read units", op, float64(c.Requests)*per, c.Writes*per, c.Reads*per))
	}
	return lines
}
