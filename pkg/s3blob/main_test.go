//go:build localstack

package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/s3blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func endpoint() string {
	if url := os.Getenv("AWS_ENDPOINT_URL"); url != "" {
		return url
	}
	return "http://127.0.0.1:4566"
}

// open makes a bucket of its own for a test.
func open(t testing.TB, settings awsclient.Settings) *s3blob.Store {
	t.Helper()
	if settings.Endpoint == "" {
		settings.Endpoint = endpoint()
	}
	clients, err := awsclient.New(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Close)
	client := clients.S3()
	bucket := s3blob.Bucket(fmt.Sprintf("test-%d-%x", os.Getpid(), []byte(pipeline.KeyOf(t.Name(), "", 0, pipeline.Request{}))[:6]))
	for range 2 {
		if err := s3blob.Create(t.Context(), client, bucket, clients.Region()); err != nil {
			t.Fatalf("%v\nthese tests need LocalStack: make localstack", err)
		}
	}
	t.Cleanup(func() {
		if err := s3blob.Delete(context.Background(), client, bucket); err != nil {
			t.Log(err)
		}
	})
	return s3blob.New(client, bucket)
}

func TestBlobs(t *testing.T) {
	s := open(t, awsclient.Settings{})
	key := pipeline.DocumentKey("abc")
	if _, err := s.Blob(t.Context(), key); !errors.Is(err, pipeline.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
	for _, body := range [][]byte{bytes.Repeat([]byte("long "), 500_000), []byte("short"), {}} {
		if err := s.PutBlob(t.Context(), key, body); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Blob(t.Context(), key); err != nil || !bytes.Equal(got, body) {
			t.Errorf("got %d bytes, error %v; want %d", len(got), err, len(body))
		}
	}
}
