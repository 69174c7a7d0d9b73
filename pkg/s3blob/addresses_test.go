package s3blob_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/s3blob"
)

// Signing asks nobody.
func TestAnAddressIsForOneBlobOfOneSizeAndAWhile(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	clients, err := awsclient.New(t.Context(), awsclient.Settings{Endpoint: "http://127.0.0.1:4566", Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	store := s3blob.New(clients.S3(), "blue-blobs")
	put, headers, err := store.PutURL(t.Context(), "upload/a/1", 1234, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(put)
	if err != nil || u.Path != "/blue-blobs/upload/a/1" || u.Query().Get("X-Amz-Expires") != "600" {
		t.Errorf("got %s (%v)", put, err)
	}
	if signed := u.Query().Get("X-Amz-SignedHeaders"); !strings.Contains(signed, "content-length") || headers["Content-Length"] != "1234" {
		t.Errorf("got signed headers %q and %v, want the length among them: nobody may put more than was said", signed, headers)
	}
	get, err := store.GetURL(t.Context(), "answer/1", "text/html", time.Minute)
	if err != nil || !strings.Contains(get, "/blue-blobs/answer/1?") || !strings.Contains(get, "X-Amz-Expires=60") || !strings.Contains(get, "response-content-type=text%2Fhtml") {
		t.Errorf("got %s (%v)", get, err)
	}
}
