package awsclient

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A renewal is through, or known to be busy, before its claim may have expired, however often it is sent.
func TestStoreRequestsEndBeforeTheClaim(t *testing.T) {
	p := pipeline.DefaultPolicy()
	longest := storeTries*storeTimeout + (storeTries-1)*storeBackoff
	if left := p.ClaimTTL - p.MaxSkew; longest >= left {
		t.Errorf("a request of the store takes up to %v, and a claim is trusted for %v", longest, left)
	}
	if pollTimeout <= 20*time.Second {
		t.Errorf("a long poll of 20 s is given up after %v", pollTimeout)
	}
}

func TestSettings(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	t.Run("what is no address is refused with an example", func(t *testing.T) {
		for _, endpoint := range []string{"127.0.0.1:4566", "4566", "http://"} {
			if _, err := New(t.Context(), Settings{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:4566") {
				t.Errorf("%q: got error %v, want what to write", endpoint, err)
			}
		}
	})
	t.Run("AWS itself needs a region", func(t *testing.T) {
		if _, err := New(t.Context(), Settings{}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
			t.Errorf("got error %v, want what to set", err)
		}
	})
	t.Run("AWS itself needs credentials", func(t *testing.T) {
		if _, err := New(t.Context(), Settings{Region: "eu-west-1"}); err == nil || !strings.Contains(err.Error(), "AWS_PROFILE") {
			t.Errorf("got error %v, want what to set", err)
		}
	})
	t.Run("an endpoint on this machine needs neither region nor credentials", func(t *testing.T) {
		c, err := New(t.Context(), Settings{Endpoint: "http://127.0.0.1:4566"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.cfg.Credentials.Retrieve(t.Context())
		if err != nil || got.AccessKeyID != "test" || c.Region() != "us-east-1" {
			t.Errorf("got key %q in %q, error %v", got.AccessKeyID, c.Region(), err)
		}
	})
	t.Run("no one else's endpoint gets made-up credentials", func(t *testing.T) {
		if _, err := New(t.Context(), Settings{Endpoint: "https://dynamodb.example.com"}); err == nil || !strings.Contains(err.Error(), "no AWS credentials") {
			t.Errorf("got error %v, want none found", err)
		}
	})
}
