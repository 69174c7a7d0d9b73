package awscost

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers is a service that answers every request with the same.
type answers string

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func (m *Meter) asks(t *testing.T, target, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", target)
	resp, err := m.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMeter(t *testing.T) {
	long := strings.Repeat("x", 1500)
	for _, c := range []struct {
		name, target, body, answer string
		want                       Count
		dollars                    float64
	}{
		{
			"a write of a kilobyte and a half is two units", "DynamoDB_20120810.PutItem",
			`{"Item": {"pk": {"S": "job#1"}, "body": {"S": "` + long + `"}}}`, `{}`,
			Count{1, 2, 0},
			2 * priceWrites / 1e6,
		},
		{
			"a row that is listed costs its index too", "DynamoDB_20120810.PutItem",
			`{"Item": {"pk": {"S": "job#1"}, "due_shard": {"S": "1"}}}`, `{}`,
			Count{1, 2, 0},
			2 * priceWrites / 1e6,
		},
		{
			"a consistent read of nothing is a unit, and half of one without", "DynamoDB_20120810.GetItem",
			`{"ConsistentRead": true, "Key": {"pk": {"S": "job#1"}}}`, `{}`,
			Count{1, 0, 1},
			priceReads / 1e6,
		},
		{
			"each delete of a batch is a unit", "DynamoDB_20120810.BatchWriteItem",
			`{"RequestItems": {"t": [{"DeleteRequest": {"Key": {}}}, {"DeleteRequest": {"Key": {}}}]}}`, `{}`,
			Count{1, 2, 0},
			2 * priceWrites / 1e6,
		},
		{"a queue is charged by the request", "AmazonSQS.ReceiveMessage", `{}`, `{}`, Count{1, 0, 0}, priceQueue / 1e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &Meter{}
			m.Around(answers(c.answer))
			m.asks(t, c.target, c.body)
			if got := m.Total(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got := m.Price(); math.Abs(got-c.dollars) > 1e-12 {
				t.Errorf("got %g dollars, want %g", got, c.dollars)
			}
		})
	}
}
