package sqlitestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// blobs are files in a folder that no key can leave. A body is written beside and renamed: whole or not at all.
type blobs struct {
	root *os.Root
	sync bool
}

const (
	tempFolder = ".tmp"         // what is being written
	tempAge    = 24 * time.Hour // then nobody writes it any more
)

func openBlobs(dir string, sync bool) (*blobs, error) {
	if err := os.MkdirAll(path.Join(dir, tempFolder), 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	b := &blobs{root: root, sync: sync}
	b.sweep(time.Now().Add(-tempAge))
	return b, nil
}

func (b *blobs) close() error { return b.root.Close() }

// sweep removes what killed processes left half written. What it cannot remove harms nobody.
func (b *blobs) sweep(before time.Time) {
	left, err := fs.ReadDir(b.root.FS(), tempFolder)
	if err != nil {
		return
	}
	for _, entry := range left {
		if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
			_ = b.root.Remove(path.Join(tempFolder, entry.Name()))
		}
	}
}

// PutBlob stores the body as a file; folders are made from the slashes of its key.
func (s *Store) PutBlob(ctx context.Context, key string, body []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if err := s.blobs.put(key, body); err != nil {
		return fmt.Errorf("put blob %s: %w", key, s.explain(ctx, err))
	}
	return nil
}

// Blob reads it.
func (s *Store) Blob(ctx context.Context, key string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	body, err := s.blobs.root.ReadFile(key)
	if errors.Is(err, fs.ErrNotExist) {
		err = pipeline.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", key, err)
	}
	return body, nil
}

// checkKey refuses what would leave the folder or meet a file that is being written.
func checkKey(key string) error {
	if !fs.ValidPath(key) || key == "." || strings.ContainsAny(key, "\\:\x00") || strings.HasPrefix(key, tempFolder) {
		return fmt.Errorf("%q is no key of a blob: use names between single slashes, without \"..\"", pipeline.Cut(key, 60))
	}
	return nil
}

func (b *blobs) put(key string, body []byte) error {
	temp := path.Join(tempFolder, rand.Text())
	if err := b.root.MkdirAll(path.Dir(key), 0o755); err != nil {
		return err
	}
	err := b.writeFile(temp, body)
	if err == nil {
		err = b.root.Rename(temp, key)
	}
	if err != nil {
		_ = b.root.Remove(temp) // else it is swept some day
		return err
	}
	return b.syncFolder(path.Dir(key))
}

func (b *blobs) writeFile(name string, body []byte) error {
	file, err := b.root.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err == nil && b.sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncFolder makes the new name survive a power cut.
func (b *blobs) syncFolder(name string) error {
	if !b.sync {
		return nil
	}
	folder, err := b.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
