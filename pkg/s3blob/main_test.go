//go:build localstack

package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/s3blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a bucket of its own for a test.
func open(t testing.TB, settings awsclient.Settings) *s3blob.Store {
	t.Helper()
	clients := awstest.Clients(t, awstest.All, settings)
	client := clients.S3()
	bucket := s3blob.Bucket(awstest.Stack())
	for range 2 {
		awstest.Made(t, s3blob.Create(t.Context(), client, bucket, clients.Region()))
	}
	t.Cleanup(func() { awstest.Removed(t, s3blob.Delete(context.Background(), client, bucket)) })
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
