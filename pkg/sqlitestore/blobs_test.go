package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

func TestBlobs(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, t.TempDir(), Config{})
	folder := filepath.Join(dirOf(s), blobsName)

	t.Run("a blob is a file under its key", func(t *testing.T) {
		for _, body := range []string{"first", "second, in its place"} {
			if err := s.PutBlob(ctx, "document/a.txt", []byte(body)); err != nil {
				t.Fatal(err)
			}
			if got := string(readFile(t, filepath.Join(folder, "document", "a.txt"))); got != body {
				t.Errorf("got %q, want %q", got, body)
			}
		}
	})

	t.Run("no key leaves the folder", func(t *testing.T) {
		for _, key := range []string{"", ".", "..", "../a", "a/../b", "a/../../b", "/a", "a//b", "a/", "a\\b", "c:a", ".tmp/a", "a\x00b"} {
			if err := s.PutBlob(ctx, key, nil); err == nil {
				t.Errorf("put %q: want it refused", key)
			}
			if _, err := s.Blob(ctx, key); err == nil || errors.Is(err, pipeline.ErrNotFound) {
				t.Errorf("read %q: got %v, want it refused", key, err)
			}
		}
	})

	t.Run("a write that fails leaves nothing", func(t *testing.T) {
		if err := s.PutBlob(ctx, "document", []byte("a folder stands there")); err == nil {
			t.Error("want it refused")
		}
		left, err := os.ReadDir(filepath.Join(folder, tempFolder))
		if err != nil || len(left) != 0 {
			t.Errorf("got %v, %v, want nothing left", left, err)
		}
	})

	t.Run("what killed processes left is swept, what is being written is not", func(t *testing.T) {
		old, young := filepath.Join(folder, tempFolder, "old"), filepath.Join(folder, tempFolder, "young")
		for _, name := range []string{old, young} {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		past := time.Now().Add(-2 * tempAge)
		if err := os.Chtimes(old, past, past); err != nil {
			t.Fatal(err)
		}
		openTest(t, dirOf(s), Config{})
		if _, err := os.Stat(old); !os.IsNotExist(err) {
			t.Errorf("the old one: got %v, want it gone", err)
		}
		if _, err := os.Stat(young); err != nil {
			t.Errorf("the young one: %v", err)
		}
	})
}
