package awsclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	answer := `{"Name": "model-key", "SecretString": "s3cret"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"SecretId":"model-key"`) {
			t.Errorf("got %s", body)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c, err := New(t.Context(), Settings{Endpoint: server.URL, Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	if got, err := c.Secret(t.Context(), "model-key"); err != nil || got != "s3cret" {
		t.Errorf("got %q, %v", got, err)
	}
	answer = `{"Name": "model-key", "SecretBinary": "AAAA"}`
	if _, err := c.Secret(t.Context(), "model-key"); err == nil || !strings.Contains(err.Error(), "model-key has no text") {
		t.Errorf("got %v, want what to put into it", err)
	}
}
