package work

import (
	"context"
	"sync"

	"holdfast/pkg/pipeline"
)

// shelf keeps a few of the immutable things that chunks of the same job share: they never change under their key.
type shelf struct {
	items pipeline.Items
	blobs pipeline.Blobs

	mu          sync.Mutex
	definitions map[string]pipeline.Definition
	manifests   map[pipeline.JobID]pipeline.Manifest
	documents   map[string]string
}

// shelfRoom is how many of each are kept; at most as many large documents stay in memory.
const shelfRoom = 8

func newShelf(items pipeline.Items, blobs pipeline.Blobs) *shelf {
	return &shelf{
		items: items, blobs: blobs, definitions: map[string]pipeline.Definition{},
		manifests: map[pipeline.JobID]pipeline.Manifest{}, documents: map[string]string{},
	}
}

func (s *shelf) definition(ctx context.Context, key string) (pipeline.Definition, error) {
	return fetch(&s.mu, s.definitions, key, func() (pipeline.Definition, error) {
		body, err := s.blobs.Blob(ctx, key)
		if err != nil {
			return pipeline.Definition{}, err
		}
		return pipeline.DecodeDefinition(body)
	})
}

func (s *shelf) manifest(ctx context.Context, job pipeline.JobID) (pipeline.Manifest, error) {
	return fetch(&s.mu, s.manifests, job, func() (pipeline.Manifest, error) {
		return pipeline.ReadManifest(ctx, s.items, job)
	})
}

func (s *shelf) text(ctx context.Context, key string) (string, error) {
	return fetch(&s.mu, s.documents, key, func() (string, error) {
		body, err := s.blobs.Blob(ctx, key)
		return string(body), err
	})
}

func fetch[K comparable, V any](mu *sync.Mutex, shelf map[K]V, key K, read func() (V, error)) (V, error) {
	mu.Lock()
	v, found := shelf[key]
	mu.Unlock()
	if found {
		return v, nil
	}
	v, err := read()
	if err != nil {
		return v, err
	}
	mu.Lock()
	defer mu.Unlock()
	if len(shelf) >= shelfRoom {
		clear(shelf)
	}
	shelf[key] = v
	return v, nil
}
