package pipeline

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
)

// Manifest is what the split found: the chunks, by offset, and what they were cut from. The first one stored counts.
type Manifest struct {
	Chunks      []Chunk  `json:"chunks"`
	Document    string   `json:"document"`         // sha256 of the text
	Splitter    string   `json:"splitter"`         // name@version
	Fingerprint string   `json:"fingerprint"`      // of document, splitter and definition
	Calls       int      `json:"calls"`            // calls per chunk
	InputTokens int      `json:"input_tokens"`     // estimated, of all first asks
	Notes       []string `json:"notes,omitempty"`  // what of the document was not read, or read in its own way, for people
	Unread      []Unread `json:"unread,omitempty"` // of the document: it is not judged in full
	Closed      bool     `json:"closed,omitempty"` // put by whoever closed a split that was not done: n = 0
}

// Chunk is a part of the text. All offsets are bytes into the stored text; cores tile it exactly.
type Chunk struct {
	Index   int    `json:"i"`
	Context int    `json:"c"` // [Context, Start) is shown before the core and belongs to the chunk before
	Start   int    `json:"s"`
	End     int    `json:"e"`
	Tokens  int    `json:"t"` // estimated, of core and context
	Heading string `json:"h,omitempty"`
}

// plainManifest is how large a manifest is stored as plain JSON; a larger one is compressed, so that one of many
// thousand chunks fits an item.
const plainManifest = 100 << 10

// Encode is the manifest as it is stored under ManifestKey.
func (m Manifest) Encode() []byte {
	plain := Encode(m)
	if len(plain) <= plainManifest {
		return plain
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(plain); err != nil {
		panic(fmt.Sprintf("compress a manifest in memory: %v", err)) // a Buffer takes everything
	}
	if err := w.Close(); err != nil {
		panic(fmt.Sprintf("compress a manifest in memory: %v", err))
	}
	return packed.Bytes()
}

// DecodeManifest reads what Encode wrote.
func DecodeManifest(body []byte) (Manifest, error) {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return Manifest{}, fmt.Errorf("decode manifest: %w", err)
		}
		if body, err = io.ReadAll(io.LimitReader(r, 64<<20)); err != nil {
			return Manifest{}, fmt.Errorf("decode manifest: %w", err)
		}
	}
	return Decode[Manifest](body, "manifest")
}

// ReadManifest is the manifest that stands. ErrNotFound before there is one.
func ReadManifest(ctx context.Context, items interface {
	Item(ctx context.Context, job JobID, key string) ([]byte, error)
}, job JobID,
) (Manifest, error) {
	body, err := items.Item(ctx, job, ManifestKey)
	if err != nil {
		return Manifest{}, fmt.Errorf("read the manifest of %s: %w", job, err)
	}
	return DecodeManifest(body)
}
