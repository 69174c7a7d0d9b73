package wiring_test

import (
	"net"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

func TestNothingRunsAtTheEndpoint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	_, err = wiring.OpenAWS(t.Context(), wiring.AWS{Stack: "s", Endpoint: url}, pipeline.DefaultPolicy())
	if err == nil || !strings.Contains(err.Error(), "nothing answers at") || !strings.Contains(err.Error(), url) {
		t.Errorf("got error %v, want what to start", err)
	}
}
