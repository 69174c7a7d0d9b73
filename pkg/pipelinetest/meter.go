package pipelinetest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"

	"holdfast/pkg/awscost"
)

// MeteredProxy is a meter for processes: they reach the service through its address.
type MeteredProxy struct {
	awscost.Meter
	URL string
}

// NewMeteredProxy is a meter before a service, until the test ends.
func NewMeteredProxy(t testing.TB, forward *httputil.ReverseProxy) *MeteredProxy {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	p := &MeteredProxy{}
	forward.Transport = p.Around(transport)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(forward)
	p.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return p
}
